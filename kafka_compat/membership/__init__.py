"""How a broker belongs: what it asks of that (`membership`), and the answers of one that is alone and leads
all that it holds (`lone`). For clusters see `kafka_compat.cluster`.
"""
