"""A broker that speaks the Kafka wire protocol, written in Python on asyncio."""

import os

# In a checkout, the packages storage/ and coordination/ are next to this directory. In an installation,
# they are inside it (docs/design/decisions/0006).
_here = os.path.dirname(os.path.abspath(__file__))
if not os.path.isdir(os.path.join(_here, "storage")):
    __path__.append(os.path.dirname(_here))
del _here
