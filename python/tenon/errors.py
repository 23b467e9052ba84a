"""What Tenon raises."""


class Error(Exception):
    """Any of these."""


class UserError(Error, ValueError):
    """What was given is at fault."""


class UnsupportedError(UserError, NotImplementedError):
    """What was given is valid, but asks for what Tenon does not do."""


class InternalError(Error, RuntimeError):
    """A bug in Tenon."""
