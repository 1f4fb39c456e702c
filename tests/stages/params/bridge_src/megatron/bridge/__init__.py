"""A bridge package of the shape of Megatron-Bridge, small enough to be read."""

from megatron.bridge import models as models
from megatron.bridge.training_hooks import AsyncRequest as AsyncRequest
