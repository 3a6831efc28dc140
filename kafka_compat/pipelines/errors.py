"""Exceptions that end a job, classified by the user's remedy."""


class PipelineError(Exception):
    """The reason why a job ended, with a `hint` for the user and the command's `exit_code`."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class NotStarted(PipelineError):
    """The arguments, the environment or a precondition is invalid. Nothing was changed."""

    exit_code = 2


class JobFailed(PipelineError):
    """Spark or the cluster failed during the run. Finished batches are intact, and a new run continues."""

    exit_code = 1


class RecordsLost(PipelineError):
    """Records are missing from the topic, or the run would duplicate records."""

    exit_code = 3
