__version__ = version = '0.23.0'
