"""Exceptions that end a job, with a class for each exit code of the command."""


class PipelineError(Exception):
    """An error that ends a job, with a `hint` for the user and the command's `exit_code`."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class NotStarted(PipelineError):
    """Raised before a job has changed anything, if an argument or a precondition is invalid."""

    exit_code = 2


class JobFailed(PipelineError):
    """Raised if Spark or the cluster fails during a run. A new run continues after the finished batches."""

    exit_code = 1


class RecordsLost(PipelineError):
    """Raised if records are missing from the topic, or if the run would duplicate records."""

    exit_code = 3
