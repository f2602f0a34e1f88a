"""A command of the command line as a value: what --help says about it. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DescribedParameter:
    """An argument, or an option with its environment variables, the one that wins first."""

    names: tuple[str, ...]  # of an argument: its placeholder
    long_name: str  # of an option: the one that says what it does
    placeholder: str  # of an option's value; empty for a flag
    text: str
    is_option: bool
    is_required: bool
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedCommand:
    """A command that does something, with its own parameters."""

    path: tuple[str, ...]
    text: str
    epilog: str
    parameters: tuple[DescribedParameter, ...]

    @property
    def options(self) -> tuple[DescribedParameter, ...]:
        """Return the options, in the order of --help."""
        return tuple(each for each in self.parameters if each.is_option)

    def has_option(self, name: str) -> bool:
        """Return whether the command has an option of this name."""
        return any(name in each.names for each in self.options)
