__version__ = version = '0.11.0'
