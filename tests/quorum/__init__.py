"""Tests of clusters with a metadata quorum."""
