"""What runs in a side's interpreter, where torch is. The files import nothing of ours but each other, as they are sent together."""
