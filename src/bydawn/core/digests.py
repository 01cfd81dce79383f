"""Digests, from the interpreter's own modules: `hashlib` would load OpenSSL, which takes 4 MB in every loop."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import blake2b, sha1, sha256
else:
    try:
        from _blake2 import blake2b
        from _sha1 import sha1

        try:
            from _sha256 import sha256
        except ImportError:  # since Python 3.12
            from _sha2 import sha256
    except ImportError:  # another interpreter
        from hashlib import blake2b, sha1, sha256

__all__ = ["blake2b", "sha1", "sha256"]
