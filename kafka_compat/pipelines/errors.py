"""Exceptions that end a job, classified by what the user can do about them."""


class PipelineError(Exception):
    """Why a job ended, with `hint`: what to do next. `exit_code` is what the command returns."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class NotStarted(PipelineError):
    """Arguments, environment or preconditions are wrong; nothing was touched."""

    exit_code = 2


class JobFailed(PipelineError):
    """Spark or the cluster failed in mid-run; what was archived is intact, and running again goes on."""

    exit_code = 1


class RecordsLost(PipelineError):
    """A guarantee cannot be kept: records are gone from the topic, or would come twice."""

    exit_code = 3
