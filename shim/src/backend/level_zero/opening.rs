//! Checks arguments when events and physical memory are created or opened.
//!
//! A call that fails here has had no effect.

use urscope_schema::api::ResultCode;
use urscope_schema::api::role::{Context, DataSize, Desc, Device, OpenedData, OutObject, Role};

use super::{LevelZero, driver::ZeHandle, handle_data::HandleData, result};
use crate::{backend::Family, raw::args::Arg};

/// Checks the arguments of a function that makes an object; returns the flags of its description, 0 without one.
/// `undefined` are the undefined bits.
pub(super) fn creation_flags(
    context: Arg<Context>,
    device: Arg<Device>,
    desc: Arg<Desc>,
    out: Arg<OutObject>,
    undefined: u32,
) -> Result<u32, ResultCode> {
    result::not_null(context)?;
    result::not_null(device)?;
    result::not_null(out)?;
    match desc.flags().unwrap_or(0) {
        flags if flags & undefined != 0 => Err(ResultCode::INVALID_ENUMERATION),
        flags => Ok(flags),
    }
}

/// Checks the arguments of a function that opens handle data, and decodes them. `check` is called before the data are
/// read.
pub(super) fn decode_opened<T, R: Role>(
    at: LevelZero,
    context: Arg<Context>,
    data: Arg<OpenedData>,
    size: Arg<DataSize>,
    out: Arg<R>,
    kind: Family,
    check: impl FnOnce() -> Result<T, ResultCode>,
) -> Result<(ZeHandle, T, HandleData), ResultCode> {
    result::not_null(data)?;
    result::not_null(out)?;
    let ze_context = at.context(context)?;
    let checked = check()?;
    let bytes = data.copy(size).ok_or(ResultCode::INVALID_VALUE)?;
    match HandleData::decode(&bytes) {
        Ok(data) if data.kind == kind => Ok((ze_context, checked, data)),
        _ => Err(ResultCode::INVALID_VALUE),
    }
}
