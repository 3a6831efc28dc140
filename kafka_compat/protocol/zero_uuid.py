"""The UUID that means "none" in messages. A separate module, so that other messages do without uuid, whose
import takes a fiftieth of a broker's startup time.
"""

from uuid import UUID

ZERO_UUID = UUID(int=0)
