"""Events about objects and about the programs themselves."""
