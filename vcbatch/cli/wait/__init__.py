"""`vcbatch wait`: until an object is as somebody needs it, or never can be."""
