"""Tests of the share coordinator and the persister."""
