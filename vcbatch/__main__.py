"""`python -m vcbatch` is the command `vcbatch`."""

from vcbatch.cli.main import main

if __name__ == "__main__":
    main()
