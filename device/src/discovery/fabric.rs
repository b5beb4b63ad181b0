//! Fabric vertices, and the entry points about them: each device is one, and each sub-device.
//!
//! The devices are not connected with each other by a fabric (their memory is that of the host), so there are no edges.

use std::sync::Arc;

use crate::discovery::driver::{self, Driver};
use crate::discovery::{device::Device, properties};
use crate::ffi;
use crate::ffi::handles::{Handle, object};
use crate::ffi::result::{ZeResult, call, getters};
use crate::ffi::{Address, Out, layout::FabricVertexProperties};

/// `ZE_FABRIC_VERTEX_EXP_TYPE_DEVICE`.
const DEVICE: u32 = 1;
/// `ZE_FABRIC_VERTEX_EXP_TYPE_SUBDEVICE`.
const SUB_DEVICE: u32 = 2;

/// The object of a `ze_fabric_vertex_handle_t`.
pub struct FabricVertex {
    pub(super) device: Arc<Device>,
}

object!(FabricVertex);

/// `zeFabricVertexGetExp` (ze_api.h). One for each device that `zeDeviceGet` returns, in their order.
pub extern "C" fn get(driver: Handle<Driver>, count: Out<u32>, vertices: Out<Handle<FabricVertex>>) -> ZeResult {
    call(|| {
        driver::check(driver)?;
        ffi::enumerate(count, vertices, driver::devices(), |place, device| place.write(driver::vertex_of(device)))
    })
}

getters! {
    zeDeviceGetFabricVertexExp: of_device(device: Device) -> Handle<FabricVertex> { driver::vertex_of(&device) }
    zeFabricVertexGetDeviceExp: get_device(vertex: FabricVertex) -> Handle<Device> { Handle::from_object(&vertex.device) }
}

/// `zeFabricVertexGetSubVerticesExp` (ze_api.h). Those of the sub-devices.
pub extern "C" fn get_sub_vertices(
    vertex: Handle<FabricVertex>,
    count: Out<u32>,
    vertices: Out<Handle<FabricVertex>>,
) -> ZeResult {
    call(|| {
        let parts = driver::sub_devices(&vertex.get()?.device);
        ffi::enumerate(count, vertices, parts, |place, part| place.write(driver::vertex_of(part)))
    })
}

/// `zeFabricVertexGetPropertiesExp` (ze_api.h). UUID and address are those of the device.
pub extern "C" fn get_properties(vertex: Handle<FabricVertex>, out: Out<FabricVertexProperties>) -> ZeResult {
    call(|| {
        let vertex = vertex.get()?;
        out.edit(|out| {
            out.uuid = vertex.device.uuid();
            out.kind = if vertex.device.whole().is_none() { DEVICE } else { SUB_DEVICE };
            out.remote = 0;
            out.address = properties::pci_address(vertex.device.index);
        })
    })
}

/// `zeFabricEdgeGetExp` (ze_api.h). There are none.
pub extern "C" fn get_edges(
    one: Handle<FabricVertex>,
    other: Handle<FabricVertex>,
    count: Out<u32>,
    edges: Out<Address>,
) -> ZeResult {
    call(|| {
        one.get()?;
        other.get()?;
        ffi::enumerate(count, edges, &[], |place, edge| place.write(*edge))
    })
}
