#!/bin/bash
set -e

PROJECT_DIR="$1"
MAX_ITERATIONS="${2:-30}"
COMPLETION_PROMISE="${3:-COMPLETE}"

if [ -z "$PROJECT_DIR" ]; then
  echo "Usage: $0 <project_dir> [max_iterations] [completion_promise]"
  exit 1
fi

cd "$PROJECT_DIR"
mkdir -p .rloop

TASK_FILE="PRD.md"
LOG_FILE=".rloop/ralph.log"

stream_text='select(.type == "assistant").message.content[]? | select(.type == "text").text // empty | gsub("\n"; "\r\n") | . + "\r\n\n"'
final_result='select(.type == "result").result // empty'

count_remaining() {
  grep -c '^\s*- \[ \]' "$TASK_FILE" 2>/dev/null || echo "0"
}

check_genuine_completion() {
  local result="$1"
  local remaining=$(count_remaining)
  
  # Must have zero remaining tasks
  if [ "$remaining" -gt 0 ]; then
    return 1
  fi
  
  # Promise must appear at the end (last 500 chars), not just mentioned
  local tail_result=$(echo "$result" | tail -c 500)
  if echo "$tail_result" | grep -qE "<promise>$COMPLETION_PROMISE</promise>"; then
    # Verify it's not negated (common patterns)
    if echo "$tail_result" | grep -qE "(cannot|can't|won't|will not|do not|don't).*<promise>"; then
      return 1
    fi
    return 0
  fi
  
  return 1
}

echo "Starting ralph loop in $PROJECT_DIR" | tee "$LOG_FILE"
echo "Max iterations: $MAX_ITERATIONS" | tee -a "$LOG_FILE"
echo "Started at: $(date -Iseconds)" | tee -a "$LOG_FILE"
echo "Initial remaining tasks: $(count_remaining)" | tee -a "$LOG_FILE"

for ((i=1; i<=$MAX_ITERATIONS; i++)); do
  remaining=$(count_remaining)
  echo "" | tee -a "$LOG_FILE"
  echo "=== Iteration $i/$MAX_ITERATIONS (Remaining: $remaining) ===" | tee -a "$LOG_FILE"
  
  if [ "$remaining" -eq 0 ]; then
    echo "Zero tasks remaining before iteration, checking completion..." | tee -a "$LOG_FILE"
  fi
  
  tmpfile=$(mktemp)
  trap "rm -f $tmpfile" EXIT

  IS_SANDBOX=1 claude \
    --dangerously-skip-permissions \
    --verbose \
    --print \
    --output-format stream-json \
    -p "Read $TASK_FILE carefully. Find any task marked '- [ ]' (unchecked).

If unchecked tasks exist:
- Complete ONE task fully
- Mark it '- [ ]' in $TASK_FILE  
- Commit changes
- Exit normally (do NOT output completion promise)

If ZERO '- [ ]' remain (all complete):
- Verify by searching the file
- Output ONLY: <promise>$COMPLETION_PROMISE</promise>

CRITICAL: Never mention the promise unless outputting it as the completion signal.

Iteration: $i/$MAX_ITERATIONS" \
  2>&1 | grep --line-buffered '^{' \
  | tee "$tmpfile" \
  | jq --unbuffered -rj "$stream_text" \
  | tee -a "$LOG_FILE"

  result=$(jq -r "$final_result" "$tmpfile" 2>/dev/null || cat "$tmpfile")

  if check_genuine_completion "$result"; then
    echo "" | tee -a "$LOG_FILE"
    echo "✅ Ralph complete after $i iterations." | tee -a "$LOG_FILE"
    echo "FINISHED: $(date -Iseconds)" | tee -a "$LOG_FILE"
    exit 0
  fi
  
  new_remaining=$(count_remaining)
  echo "Tasks remaining after iteration: $new_remaining" | tee -a "$LOG_FILE"
  
  sleep 2
done

echo "" | tee -a "$LOG_FILE"
echo "⚠️ Hit max iterations ($MAX_ITERATIONS)" | tee -a "$LOG_FILE"
echo "Remaining tasks: $(count_remaining)" | tee -a "$LOG_FILE"
echo "FINISHED: $(date -Iseconds)" | tee -a "$LOG_FILE"
exit 1
