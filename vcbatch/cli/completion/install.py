"""`vcbatch completion install`: enable completion in a user's shell, by a block in its start-up file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from vcbatch.cli.base.output import CliError

BEGIN: Final = "# >>> vcbatch completion >>>"
END: Final = "# <<< vcbatch completion <<<"
_LINES: Final = {
    "bash": "command -v vcbatch >/dev/null && source <(vcbatch completion bash)",
    "zsh": "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n"
    "command -v vcbatch >/dev/null && source <(vcbatch completion zsh)",
    "fish": "command -q vcbatch; and vcbatch completion fish | source",
}


def shell_in_use() -> str:
    """The user's login shell. Raises `CliError` where it isn't one of the three."""
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in _LINES:
        name = f"{shell}: no completion for this shell" if shell else "$SHELL is not set"
        raise CliError(name, hint="Name the shell: `vcbatch completion install bash` (or zsh, fish)")
    return shell


def start_up_file(shell: str) -> Path:
    """The file that an interactive shell reads at its start."""
    home = Path.home()
    if shell == "zsh":
        return Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return config / "fish" / "conf.d" / "vcbatch.fish"
    return home / ".bashrc"


def install(shell: str) -> tuple[Path, bool]:
    """Write the block into the start-up file, in place of an earlier one; everything else in the file is kept. Returns
    the file, and whether it was changed. Raises `CliError`."""
    file = start_up_file(shell)
    block = f"{BEGIN}\n{_LINES[shell]}\n{END}\n"
    try:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        after = _with(before, block, file)
        if after == before:
            return file, False
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.resolve().open("w", encoding="utf-8") as out:  # in place: it may be a link into a repository
            out.write(after)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not valid UTF-8"
        raise CliError(f"can't change {file}: {reason}") from error
    return file, True


def _with(text: str, block: str, file: Path) -> str:
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 and end < 0:
        return text + ("\n" if text and not text.endswith("\n") else "") + block
    if not 0 <= begin < end:
        hint = f"Remove the lines `{BEGIN}` and `{END}`, and what is between them."
        raise CliError(f"{file}: incomplete block of vcbatch", hint=hint)
    rest = text[end + len(END) :]
    return text[:begin] + block + rest.removeprefix("\n")
