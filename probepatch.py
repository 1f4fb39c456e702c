"""The entry point: makes sure that our own modules are the ones imported, then calls the command line.

RL users always have PYTHONPATH set, and stand in folders of their own; a ``cli.py`` or a ``commands/`` there must not
win. The environment itself stays as it is: interpreters that we ask about packages need it.
"""

import os
import sys

_OWN = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        print("error: the current folder does not exist any more; nothing was done", file=sys.stderr)
        sys.exit(3)
    foreign = {os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
        foreign.add(os.path.abspath(sys.path[0]))  # the current folder (-m), or the folder of the script
    foreign.discard(_OWN)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) not in foreign]
    if _OWN not in sys.path:
        sys.path.append(_OWN)

    try:
        from cli import main as run

        code = run()
    except KeyboardInterrupt:  # while the modules are loaded
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
