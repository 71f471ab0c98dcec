"""Entry point of `python -m lance_duck`; that of `lance-duck` is `lance_duck_command`, which it calls."""

from lance_duck_command import main

if __name__ == "__main__":
    main()
