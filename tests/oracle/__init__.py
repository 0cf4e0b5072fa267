"""An independent, slow statement of what the scheduler decides, and worlds to compare on."""
