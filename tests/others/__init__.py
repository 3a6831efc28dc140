"""Other projects' own test suites, unchanged, against this broker and against Apache Kafka.

- A `Suite` (suite.py) has a name, a version, the package that its tests come from, a description of the
  servers that it needs, and a function that runs it against one side and returns the outcome of each test.
- Each suite is one module (franz_go.py, kafka_go.py, …). It starts "ours" or "genuine" with servers.py, gets
  the tests from the registry of their language (go_modules.py, crates.py, python_sdists.py), and parses their
  output (go_output.py, cargo_output.py, junit_output.py).
- Projects without tests that take an address have scenarios (scenarios.py): small programs in `programs` use
  their packages (virtualenv.py, tests/support/kafka_jars.py), and a flow of numbered records through them
  (flow.py) must be complete although the broker and the program (program.py) are killed.
- comparison.py: a test that passes on Apache Kafka must pass here, unless differences.py lists it with a
  decision. Tests that cannot be run are listed in the module of their suite, with the reason.
- A campaign runs every suite on both sides (both_sides.py), and writes the versions and the counts to
  results.json, from which docs/compatibility.md is generated (`python -m tests.docs.write`).
- Every day, test_suites.py runs a few tests of one suite on ours, if the tests were compiled before.
"""
