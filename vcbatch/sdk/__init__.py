"""The Python SDK: what `import vcbatch` gives to notebooks, scripts and programs."""
