/* The least that a round can cost: starts the same children as one round of bydawn, waits for them, and does the
 * same syncs, nothing else.
 *
 *     reference PLAN WORKSPACE FOLDER FIRST ROUNDS
 *
 * PLAN holds words that end with NUL: `sync`, or `spawn`, how its output is taken (`pipe` or `files`), a file with its
 * input, the number of arguments, the arguments, the number of variables, the variables. In arguments and input @ROUND@
 * stands for the number of the round, from FIRST on, and @TREE@ for the last tree that git printed. The children run in
 * WORKSPACE; ledger and output go to FOLDER.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 64, WORDS = 512, TREE = 40 };

struct step {
    int sync, pipe;
    size_t size; /* of the input */
    char *input, *argv[WORDS], *env[WORDS];
};

static struct step steps[STEPS];
static int count;
static char tree[TREE + 1];

static void need(int fine, const char *what) {
    if (!fine) {
        perror(what);
        exit(1);
    }
}

static char *slurp(const char *path, size_t *size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    need(fd >= 0, path);
    *size = (size_t)lseek(fd, 0, SEEK_END);
    char *data = malloc(*size + 1);
    need(data && pread(fd, data, *size, 0) == (ssize_t)*size, path);
    data[*size] = 0;
    close(fd);
    return data;
}

static char *word(char **at) {
    char *found = *at;
    *at += strlen(found) + 1;
    return found;
}

static void words(char **at, char **into) {
    int number = atoi(word(at));
    need(number < WORDS, "too many words");
    for (int i = 0; i < number; i++)
        into[i] = word(at);
}

static void read_plan(const char *path) {
    size_t size;
    char *at = slurp(path, &size), *end = at + size;
    while (at < end) {
        need(count < STEPS, "too many steps");
        struct step *step = &steps[count++];
        step->sync = !strcmp(word(&at), "sync");
        if (step->sync)
            continue;
        step->pipe = !strcmp(word(&at), "pipe");
        step->input = slurp(word(&at), &step->size);
        words(&at, step->argv);
        words(&at, step->env);
    }
}

/* A copy with @ROUND@ and @TREE@ replaced. */
static char *expanded(const char *text, size_t *size, int round) {
    char number[16], *copy = malloc(*size + 1024), *to = copy;
    need(copy != NULL, "memory");
    snprintf(number, sizeof number, "%d", round);
    for (const char *from = text, *end = text + *size; from < end;) {
        const char *word = NULL, *mark = NULL;
        if (end - from >= 7 && !memcmp(from, "@ROUND@", 7))
            word = number, mark = "@ROUND@";
        else if (end - from >= 6 && !memcmp(from, "@TREE@", 6))
            word = tree, mark = "@TREE@";
        if (word) {
            to = stpcpy(to, word);
            from += strlen(mark);
        } else {
            *to++ = *from++;
        }
    }
    *size = (size_t)(to - copy);
    *to = 0;
    return copy;
}

/* Takes what git prints; a line of 40 characters is the tree. */
static void listen_to(int fd) {
    char said[65536];
    ssize_t got, all = 0;
    while (all < (ssize_t)sizeof said && (got = read(fd, said + all, sizeof said - (size_t)all)) > 0)
        all += got;
    if (all == TREE + 1 && said[TREE] == '\n')
        memcpy(tree, said, TREE);
}

static void run(struct step *step, const char *folder, int round, int number) {
    char out[4096], err[4096], *argv[WORDS] = {0};
    int input[2], output[2];
    posix_spawnattr_t how;
    posix_spawn_file_actions_t files;
    sigset_t none;
    pid_t pid;
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_init(&files);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    for (int i = 0; step->argv[i]; i++) {
        size_t size = strlen(step->argv[i]);
        argv[i] = expanded(step->argv[i], &size, round);
    }
    need(!pipe2(input, O_CLOEXEC) && !pipe2(output, O_CLOEXEC), "pipe");
    posix_spawn_file_actions_adddup2(&files, input[0], 0);
    if (step->pipe) {
        posix_spawn_file_actions_adddup2(&files, output[1], 1);
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    } else {
        snprintf(out, sizeof out, "%s/%d.%d.stdout", folder, round, number);
        snprintf(err, sizeof err, "%s/%d.%d.stderr", folder, round, number);
        posix_spawn_file_actions_addopen(&files, 1, out, O_WRONLY | O_CREAT | O_APPEND, 0600);
        posix_spawn_file_actions_addopen(&files, 2, err, O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    need(!posix_spawnp(&pid, argv[0], &files, &how, argv, step->env), argv[0]);
    close(input[0]);
    close(output[1]);
    size_t size = step->size;
    char *text = expanded(step->input, &size, round);
    need(write(input[1], text, size) == (ssize_t)size, "write"); /* it fits into the pipe */
    close(input[1]);
    listen_to(output[0]);
    close(output[0]);
    int status;
    need(waitpid(pid, &status, 0) == pid, "wait");
    need(status == 0, argv[0]);
    free(text);
    for (int i = 0; argv[i]; i++)
        free(argv[i]);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
}

int main(int argc, char **argv) {
    char path[4096], line[512];
    need(argc == 6, "reference PLAN WORKSPACE FOLDER FIRST ROUNDS");
    signal(SIGPIPE, SIG_IGN);
    read_plan(argv[1]);
    need(!chdir(argv[2]), argv[2]);
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    snprintf(path, sizeof path, "%s/ledger", argv[3]);
    int ledger = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    need(ledger >= 0, path);
    for (int round = atoi(argv[4]), end = round + atoi(argv[5]); round < end; round++)
        for (int i = 0; i < count; i++)
            if (!steps[i].sync)
                run(&steps[i], argv[3], round, i);
            else
                need(write(ledger, line, sizeof line) == sizeof line && !fdatasync(ledger), "sync");
    return 0;
}
