"""Entry point of `python -m lance_duck`. It calls `lance_duck_command`, like the command `lance-duck`."""

from lance_duck_command import main

if __name__ == "__main__":
    main()
