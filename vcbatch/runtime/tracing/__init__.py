"""Spans of jobs, cycles and reconciles, where tracing is on."""
