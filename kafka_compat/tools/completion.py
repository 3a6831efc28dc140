"""kafka-compat completion SHELL: print shell completion for the flags of Kafka's commands."""

import argparse
from typing import Any, Final

from kafka_compat.tools.options import JSON, WITHOUT_JSON, Flag, flags_of
from kafka_compat.tools.registry import TOOLS

SHELLS: Final = ("bash", "zsh", "fish")
_TEXT_MAX: Final = 70


def add_parser(subparsers: Any) -> None:
    """Add the `completion` subcommand to the command line."""
    parser = subparsers.add_parser(
        "completion",
        help="print shell completion for Kafka's commands",
        description="Print a completion script. To enable completion, add the line for your shell. "
        '~/.bashrc: eval "$(kafka-compat completion bash)"; ~/.zshrc: eval "$(kafka-compat completion zsh)"; '
        "config.fish: kafka-compat completion fish | source",
    )
    parser.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    """Print the completion, and return the exit code."""
    script_of = {"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]
    print(script_of({tool: _flags(tool) for tool in sorted(TOOLS)}))
    return 0


def _flags(tool: str) -> list[Flag]:
    own = [] if tool in WITHOUT_JSON else [Flag(JSON, "none", False, "Print JSON.")]
    return [*flags_of(tool), *own]


def _bash(flags: dict[str, list[Flag]]) -> str:
    words = {tool: " ".join(f"--{flag.name}" for flag in found) for tool, found in flags.items()}
    cases = "\n".join(f"    {tool}) words='{found}';;" for tool, found in words.items())
    names = " ".join(f"kafka-{tool} kafka-{tool}.sh" for tool in flags)
    return f"""\
_kafka_compat() {{
  local tool=${{COMP_WORDS[0]##*/}} words=
  tool=${{tool%.sh}}
  tool=${{tool#kafka-}}
  if [ "$tool" = compat ]; then
    if [ "$COMP_CWORD" = 1 ]; then
      COMPREPLY=($(compgen -W '{" ".join(flags)}' -- "$2"))
      return
    fi
    tool=${{COMP_WORDS[1]}}
  fi
  case $tool in
{cases}
  esac
  case $2 in
    -*) COMPREPLY=($(compgen -W "$words" -- "$2"));;
    *) COMPREPLY=();;
  esac
}}
complete -o default -F _kafka_compat kafka-compat {names}"""


def _zsh(flags: dict[str, list[Flag]]) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(flags)}"


def _fish(flags: dict[str, list[Flag]]) -> str:
    lines = [f"complete -c kafka-compat -n __fish_use_subcommand -a {tool}" for tool in flags]
    for tool, found in flags.items():
        for flag in found:
            text = flag.text[:_TEXT_MAX].replace("\\", "").replace("'", "")
            rest = f"-l {flag.name}{'' if flag.argument == 'none' else ' -r'} -d '{text}'"
            lines.append(f"complete -c kafka-compat -n '__fish_seen_subcommand_from {tool}' {rest}")
            lines += [f"complete -c {name} {rest}" for name in (f"kafka-{tool}", f"kafka-{tool}.sh")]
    return "\n".join(lines)
