"""The import that fails in many containers."""

from nvidia_resiliency_ext.checkpointing.async_ckpt.core import AsyncRequest as AsyncRequest
