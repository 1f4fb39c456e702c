__version__ = version = '0.18.0'
