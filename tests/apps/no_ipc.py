"""A Python program that uses SYCL memory and shares none of it between processes."""

import dpctl
import dpctl.memory as memory

queue = dpctl.SyclQueue("level_zero:gpu")
data = bytes(range(256)) * 64

device = memory.MemoryUSMDevice(len(data), queue=queue)
shared = memory.MemoryUSMShared(len(data), queue=queue)
host = memory.MemoryUSMHost(len(data), queue=queue)

device.copy_from_host(data)
shared.copy_from_device(device)
host.copy_from_device(shared)
back = bytearray(len(data))
host.copy_to_host(back)

assert bytes(back) == data, "the copies changed the data"
print(f"{len(dpctl.get_devices(backend='level_zero')) > 0}, {len(back)} bytes came back")
