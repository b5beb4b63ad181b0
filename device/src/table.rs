//! The table: every function of the Level Zero API 1.17, and the function of this crate that implements it.
//!
//! One block for each DDI table, named after the function that fills it; one row for each function, in the order of the
//! table's members (ze_ddi.h, zet_ddi.h, zes_ddi.h, zer_ddi.h). The number is the minor API version that added the
//! function; the path after `=>` is its implementation. A row without a path, of which several may share a line,
//! returns `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE`. **To implement a function, give its row a path and write that
//! function.**
//!
//! The blocks `loader` and `extensions` hold functions outside the DDI tables: those that a process looks up in
//! `libze_loader.so.1` beyond the API, and those that `zeDriverGetExtensionFunctionAddress` returns.
//!
//! Expanded by `ddi` (entry points, tables, lookup), by `platform::faults` (fault injection) and by the crate
//! `urscope-device-loader` (exported symbols). Must never contain a name twice: every list of functions is made from
//! it.

/// Calls the macro `$sink` with the whole table.
#[macro_export]
macro_rules! ze_functions {
    ($sink:ident) => {
        $sink! {
            loader {
                zeLoaderInit => ddi::loader::init;
                zelLoaderDriverCheck => ddi::loader::driver_check;
                zeLoaderGetTracingHandle => ddi::loader::get_tracing_handle;
                zelLoaderGetVersion => ddi::loader::get_version;
                zelLoaderGetVersions => ddi::loader::get_versions;
                zelLoaderGetVersionsInternal => ddi::loader::get_versions;
                zelLoaderTranslateHandle => ddi::loader::translate_handle;
                zelLoaderTranslateHandleInternal => ddi::loader::translate_handle;
                zelGetTracerApiProcAddrTable => ddi::loader::get_tracer_table;
                zelSetDriverTeardown => ddi::loader::set_driver_teardown;
                zelCheckIsLoaderInTearDown => ddi::loader::is_in_teardown;
                zelEnableTracingLayer => ddi::tracing::enable_layer;
                zelDisableTracingLayer => ddi::tracing::disable_layer;
                zelGetTracingLayerState => ddi::tracing::get_layer_state;
                zelTracerCreate => ddi::tracing::create;
                zelTracerDestroy => ddi::tracing::destroy;
                zelTracerSetPrologues => ddi::tracing::set_prologues;
                zelTracerSetEpilogues => ddi::tracing::set_epilogues;
                zelTracerSetEnabled => ddi::tracing::set_enabled;
                zelTracerResetAllCallbacks => ddi::tracing::reset_all_callbacks;
            }
            extensions {
                zeGraphGetIdExt => commands::graph::get_id;
                zexCounterBasedEventCreate2 => events::event::counter_based_create;
                zexCounterBasedEventGetIpcHandle => events::ipc::get;
                zexCounterBasedEventOpenIpcHandle => events::ipc::open;
                zexCounterBasedEventCloseIpcHandle => events::ipc::close;
                zexMemGetIpcHandles => memory::ipc::get_all;
                zexMemOpenIpcHandles => memory::ipc::open_all;
            }
            zeGetGlobalProcAddrTable {
                 0 zeInit => discovery::driver::init;
                10 zeInitDrivers => discovery::driver::init_drivers;
            }
            zeGetRTASBuilderProcAddrTable {
                13 zeRTASBuilderCreateExt; 13 zeRTASBuilderGetBuildPropertiesExt; 13 zeRTASBuilderBuildExt;
                13 zeRTASBuilderCommandListAppendCopyExt; 13 zeRTASBuilderDestroyExt;
            }
            zeGetRTASBuilderExpProcAddrTable {
                 7 zeRTASBuilderCreateExp; 7 zeRTASBuilderGetBuildPropertiesExp; 7 zeRTASBuilderBuildExp;
                 7 zeRTASBuilderDestroyExp;
            }
            zeGetRTASParallelOperationProcAddrTable {
                13 zeRTASParallelOperationCreateExt; 13 zeRTASParallelOperationGetPropertiesExt;
                13 zeRTASParallelOperationJoinExt; 13 zeRTASParallelOperationDestroyExt;
            }
            zeGetRTASParallelOperationExpProcAddrTable {
                 7 zeRTASParallelOperationCreateExp; 7 zeRTASParallelOperationGetPropertiesExp;
                 7 zeRTASParallelOperationJoinExp; 7 zeRTASParallelOperationDestroyExp;
            }
            zeGetDriverProcAddrTable {
                 0 zeDriverGet => discovery::driver::get;
                 0 zeDriverGetApiVersion => discovery::driver::get_api_version;
                 0 zeDriverGetProperties => discovery::driver::get_properties;
                 0 zeDriverGetIpcProperties => discovery::driver::get_ipc_properties;
                 0 zeDriverGetExtensionProperties => discovery::driver::get_extension_properties;
                 1 zeDriverGetExtensionFunctionAddress => ddi::get_extension_function_address;
                 6 zeDriverGetLastErrorDescription => discovery::driver::get_last_error_description;
                13 zeDriverRTASFormatCompatibilityCheckExt;
                14 zeDriverGetDefaultContext => discovery::driver::get_default_context;
            }
            zeGetDriverExpProcAddrTable { 7 zeDriverRTASFormatCompatibilityCheckExp; }
            zeGetDeviceProcAddrTable {
                 0 zeDeviceGet => discovery::device::get;
                 0 zeDeviceGetSubDevices => discovery::device::get_sub_devices;
                 0 zeDeviceGetProperties => discovery::properties::get_properties;
                 0 zeDeviceGetComputeProperties => discovery::properties::get_compute_properties;
                 0 zeDeviceGetModuleProperties => discovery::properties::get_module_properties;
                 0 zeDeviceGetCommandQueueGroupProperties => discovery::properties::get_command_queue_group_properties;
                 0 zeDeviceGetMemoryProperties => discovery::properties::get_memory_properties;
                 0 zeDeviceGetMemoryAccessProperties => discovery::properties::get_memory_access_properties;
                 0 zeDeviceGetCacheProperties => discovery::properties::get_cache_properties;
                 0 zeDeviceGetImageProperties => discovery::properties::get_image_properties;
                 0 zeDeviceGetExternalMemoryProperties => discovery::properties::get_external_memory_properties;
                 0 zeDeviceGetP2PProperties => discovery::device::get_p2p_properties;
                 0 zeDeviceCanAccessPeer => discovery::device::can_access_peer;
                 0 zeDeviceGetStatus => discovery::device::get_status;
                 1 zeDeviceGetGlobalTimestamps => discovery::device::get_global_timestamps;
                 2 zeDeviceReserveCacheExt; 2 zeDeviceSetCacheAdviceExt;
                 3 zeDevicePciGetPropertiesExt => discovery::properties::pci_get_properties;
                 7 zeDeviceGetRootDevice => discovery::device::get_root_device;
                12 zeDeviceImportExternalSemaphoreExt; 12 zeDeviceReleaseExternalSemaphoreExt;
                13 zeDeviceGetVectorWidthPropertiesExt;
                14 zeDeviceSynchronize => commands::queue::device_synchronize;
                15 zeDeviceGetAggregatedCopyOffloadIncrementValue => discovery::properties::get_aggregated_copy_offload_increment_value;
                16 zeDeviceGetRuntimeRequirements; 16 zeDeviceGetRuntimeRequirementsKey;
                16 zeDeviceValidateRuntimeRequirements;
                17 zeDeviceGetCounterBasedEventMaxValue => discovery::properties::get_counter_based_event_max_value;
            }
            zeGetDeviceExpProcAddrTable {
                 4 zeDeviceGetFabricVertexExp => discovery::fabric::of_device;
            }
            zeGetContextProcAddrTable {
                 0 zeContextCreate => discovery::context::create;
                 0 zeContextDestroy => discovery::context::destroy;
                 0 zeContextGetStatus => discovery::context::get_status;
                 0 zeContextSystemBarrier => discovery::context::system_barrier;
                 0 zeContextMakeMemoryResident => discovery::context::make_memory_resident;
                 0 zeContextEvictMemory => discovery::context::evict_memory;
                 0 zeContextMakeImageResident; 0 zeContextEvictImage;
                 1 zeContextCreateEx => discovery::context::create_ex;
            }
            zeGetCommandQueueProcAddrTable {
                 0 zeCommandQueueCreate => commands::queue::create;
                 0 zeCommandQueueDestroy => commands::queue::destroy;
                 0 zeCommandQueueExecuteCommandLists => commands::queue::execute_command_lists;
                 0 zeCommandQueueSynchronize => commands::queue::synchronize;
                 9 zeCommandQueueGetOrdinal => commands::queue::get_ordinal;
                 9 zeCommandQueueGetIndex => commands::queue::get_index;
                17 zeCommandQueueGetFlags => commands::queue::get_flags;
                17 zeCommandQueueGetMode => commands::queue::get_mode;
                17 zeCommandQueueGetPriority => commands::queue::get_priority;
            }
            zeGetCommandListProcAddrTable {
                 0 zeCommandListCreate => commands::list::create;
                 0 zeCommandListCreateImmediate => commands::list::create_immediate;
                 0 zeCommandListDestroy => commands::list::destroy;
                 0 zeCommandListClose => commands::list::close;
                 0 zeCommandListReset => commands::list::reset;
                 0 zeCommandListAppendWriteGlobalTimestamp => commands::append::write_global_timestamp;
                 0 zeCommandListAppendBarrier => commands::append::barrier;
                 0 zeCommandListAppendMemoryRangesBarrier => commands::append::memory_ranges_barrier;
                 0 zeCommandListAppendMemoryCopy => commands::append::memory_copy;
                 0 zeCommandListAppendMemoryFill => commands::append::memory_fill;
                 0 zeCommandListAppendMemoryCopyRegion => commands::append::memory_copy_region;
                 0 zeCommandListAppendMemoryCopyFromContext => commands::append::memory_copy_from_context;
                 0 zeCommandListAppendImageCopy; 0 zeCommandListAppendImageCopyRegion;
                 0 zeCommandListAppendImageCopyToMemory; 0 zeCommandListAppendImageCopyFromMemory;
                 0 zeCommandListAppendMemoryPrefetch => commands::append::memory_prefetch;
                 0 zeCommandListAppendMemAdvise => commands::append::mem_advise;
                 0 zeCommandListAppendSignalEvent => commands::append::signal_event;
                 0 zeCommandListAppendWaitOnEvents => commands::append::wait_on_events;
                 0 zeCommandListAppendEventReset => commands::append::event_reset;
                 0 zeCommandListAppendQueryKernelTimestamps => commands::append::query_kernel_timestamps;
                 0 zeCommandListAppendLaunchKernel => commands::launch::kernel;
                 0 zeCommandListAppendLaunchCooperativeKernel => commands::launch::cooperative_kernel;
                 0 zeCommandListAppendLaunchKernelIndirect => commands::launch::kernel_indirect;
                 0 zeCommandListAppendLaunchMultipleKernelsIndirect => commands::launch::multiple_kernels_indirect;
                 3 zeCommandListAppendImageCopyToMemoryExt; 3 zeCommandListAppendImageCopyFromMemoryExt;
                 6 zeCommandListHostSynchronize => commands::list::host_synchronize;
                 9 zeCommandListGetDeviceHandle => commands::list::get_device_handle;
                 9 zeCommandListGetContextHandle => commands::list::get_context_handle;
                 9 zeCommandListGetOrdinal => commands::list::get_ordinal;
                 9 zeCommandListImmediateGetIndex => commands::list::immediate_get_index;
                 9 zeCommandListIsImmediate => commands::list::is_immediate;
                12 zeCommandListAppendSignalExternalSemaphoreExt; 12 zeCommandListAppendWaitExternalSemaphoreExt;
                14 zeCommandListAppendLaunchKernelWithParameters => commands::launch::kernel_with_parameters;
                14 zeCommandListAppendLaunchKernelWithArguments => commands::launch::kernel_with_arguments;
                16 zeCommandListAppendMemoryCopyWithParameters => commands::append::memory_copy_with_parameters;
                16 zeCommandListAppendMemoryFillWithParameters => commands::append::memory_fill_with_parameters;
                16 zeCommandListImmediateAppendCommandListsWithParameters => commands::list::immediate_append_command_lists_with_parameters;
                17 zeCommandListGetFlags => commands::list::get_flags;
                17 zeCommandListImmediateGetFlags => commands::list::immediate_get_flags;
                17 zeCommandListImmediateGetMode => commands::list::immediate_get_mode;
                17 zeCommandListImmediateGetPriority => commands::list::immediate_get_priority;
                17 zeCommandListBeginGraphCaptureExt => commands::graph::begin_capture;
                17 zeCommandListBeginCaptureIntoGraphExt => commands::graph::begin_capture_into;
                17 zeCommandListIsGraphCaptureEnabledExt => commands::graph::is_capture_enabled;
                17 zeCommandListEndGraphCaptureExt => commands::graph::end_capture;
                17 zeCommandListGetGraphExt => commands::graph::of_list;
                17 zeCommandListAppendGraphExt => commands::graph::append;
                17 zeCommandListAppendHostFunction => commands::append::host_function;
            }
            zeGetCommandListExpProcAddrTable {
                 9 zeCommandListCreateCloneExp;
                 9 zeCommandListImmediateAppendCommandListsExp => commands::list::immediate_append_command_lists;
                 9 zeCommandListGetNextCommandIdExp => commands::mutable::get_next_command_id;
                 9 zeCommandListUpdateMutableCommandsExp => commands::mutable::update_commands;
                 9 zeCommandListUpdateMutableCommandSignalEventExp => commands::mutable::update_signal_event;
                 9 zeCommandListUpdateMutableCommandWaitEventsExp => commands::mutable::update_wait_events;
                10 zeCommandListGetNextCommandIdWithKernelsExp => commands::mutable::get_next_command_id_with_kernels;
                10 zeCommandListUpdateMutableCommandKernelsExp => commands::mutable::update_kernels;
                17 zeCommandListIsMutableExp => commands::mutable::is_mutable;
            }
            zeGetEventProcAddrTable {
                 0 zeEventCreate => events::event::create;
                 0 zeEventDestroy => events::event::destroy;
                 0 zeEventHostSignal => events::event::host_signal;
                 0 zeEventHostSynchronize => events::event::host_synchronize;
                 0 zeEventQueryStatus => events::event::query_status;
                 0 zeEventHostReset => events::event::host_reset;
                 0 zeEventQueryKernelTimestamp => events::event::query_kernel_timestamp;
                 6 zeEventQueryKernelTimestampsExt => events::event::query_kernel_timestamps;
                 9 zeEventGetEventPool => events::event::get_event_pool;
                 9 zeEventGetSignalScope => events::event::get_signal_scope;
                 9 zeEventGetWaitScope => events::event::get_wait_scope;
                15 zeEventCounterBasedCreate => events::event::counter_based_create;
                15 zeEventCounterBasedGetIpcHandle => events::ipc::get;
                15 zeEventCounterBasedOpenIpcHandle => events::ipc::open;
                15 zeEventCounterBasedCloseIpcHandle => events::ipc::close;
                15 zeEventCounterBasedGetDeviceAddress => events::event::counter_based_get_device_address;
                17 zeEventGetCounterBasedFlags => events::event::get_counter_based_flags;
            }
            zeGetEventExpProcAddrTable { 2 zeEventQueryTimestampsExp; }
            zeGetEventPoolProcAddrTable {
                 0 zeEventPoolCreate => events::pool::create;
                 0 zeEventPoolDestroy => events::pool::destroy;
                 0 zeEventPoolGetIpcHandle => events::ipc::pool_get;
                 0 zeEventPoolOpenIpcHandle => events::ipc::pool_open;
                 0 zeEventPoolCloseIpcHandle => events::ipc::pool_close;
                 6 zeEventPoolPutIpcHandle => events::ipc::pool_put;
                 9 zeEventPoolGetContextHandle => events::pool::get_context_handle;
                 9 zeEventPoolGetFlags => events::pool::get_flags;
            }
            zeGetFenceProcAddrTable {
                 0 zeFenceCreate => commands::fence::create;
                 0 zeFenceDestroy => commands::fence::destroy;
                 0 zeFenceHostSynchronize => commands::fence::host_synchronize;
                 0 zeFenceQueryStatus => commands::fence::query_status;
                 0 zeFenceReset => commands::fence::reset;
            }
            zeGetImageProcAddrTable {
                 0 zeImageGetProperties; 0 zeImageCreate; 0 zeImageDestroy; 3 zeImageGetAllocPropertiesExt;
                 5 zeImageViewCreateExt;
            }
            zeGetImageExpProcAddrTable {
                 2 zeImageGetMemoryPropertiesExp; 2 zeImageViewCreateExp; 9 zeImageGetDeviceOffsetExp;
            }
            zeGetKernelProcAddrTable {
                 0 zeKernelCreate => kernels::kernel::create;
                 0 zeKernelDestroy => kernels::kernel::destroy;
                 0 zeKernelSetCacheConfig => kernels::kernel::set_cache_config;
                 0 zeKernelSetGroupSize => kernels::kernel::set_group_size;
                 0 zeKernelSuggestGroupSize => kernels::kernel::suggest_group_size;
                 0 zeKernelSuggestMaxCooperativeGroupCount => kernels::kernel::suggest_max_cooperative_group_count;
                 0 zeKernelSetArgumentValue => kernels::kernel::set_argument_value;
                 0 zeKernelSetIndirectAccess => kernels::kernel::set_indirect_access;
                 0 zeKernelGetIndirectAccess => kernels::kernel::get_indirect_access;
                 0 zeKernelGetSourceAttributes => kernels::kernel::get_source_attributes;
                 0 zeKernelGetProperties => kernels::kernel::get_properties;
                 0 zeKernelGetName => kernels::kernel::get_name;
            }
            zeGetKernelExpProcAddrTable {
                 1 zeKernelSetGlobalOffsetExp => kernels::kernel::set_global_offset;
                 2 zeKernelSchedulingHintExp => kernels::kernel::scheduling_hint;
                11 zeKernelGetBinaryExp; 14 zeKernelGetAllocationPropertiesExp;
            }
            zeGetMemProcAddrTable {
                 0 zeMemAllocShared => memory::alloc::alloc_shared;
                 0 zeMemAllocDevice => memory::alloc::alloc_device;
                 0 zeMemAllocHost => memory::alloc::alloc_host;
                 0 zeMemFree => memory::alloc::free;
                 0 zeMemGetAllocProperties => memory::alloc::get_alloc_properties;
                 0 zeMemGetAddressRange => memory::alloc::get_address_range;
                 0 zeMemGetIpcHandle => memory::ipc::get;
                 0 zeMemOpenIpcHandle => memory::ipc::open;
                 0 zeMemCloseIpcHandle => memory::ipc::close;
                 3 zeMemFreeExt => memory::alloc::free_ext;
                 6 zeMemPutIpcHandle => memory::ipc::put;
                 9 zeMemGetPitchFor2dImage;
                15 zeMemGetIpcHandleWithProperties => memory::ipc::get_with_properties;
            }
            zeGetMemExpProcAddrTable {
                 6 zeMemGetIpcHandleFromFileDescriptorExp => memory::ipc::get_by_descriptor;
                 6 zeMemGetFileDescriptorFromIpcHandleExp => memory::ipc::get_descriptor;
                 7 zeMemSetAtomicAccessAttributeExp => memory::atomics::set;
                 7 zeMemGetAtomicAccessAttributeExp => memory::atomics::get;
            }
            zeGetModuleProcAddrTable {
                 0 zeModuleCreate => kernels::module::create;
                 0 zeModuleDestroy => kernels::module::destroy;
                 0 zeModuleDynamicLink => kernels::module::dynamic_link;
                 0 zeModuleGetNativeBinary => kernels::module::get_native_binary;
                 0 zeModuleGetGlobalPointer => kernels::module::get_global_pointer;
                 0 zeModuleGetKernelNames => kernels::module::get_kernel_names;
                 0 zeModuleGetProperties => kernels::module::get_properties;
                 0 zeModuleGetFunctionPointer => kernels::module::get_function_pointer;
                 3 zeModuleInspectLinkageExt;
            }
            zeGetModuleBuildLogProcAddrTable {
                 0 zeModuleBuildLogDestroy => kernels::build_log::destroy;
                 0 zeModuleBuildLogGetString => kernels::build_log::get_string;
            }
            zeGetPhysicalMemProcAddrTable {
                 0 zePhysicalMemCreate => memory::physical::create;
                 0 zePhysicalMemDestroy => memory::physical::destroy;
                15 zePhysicalMemGetProperties => memory::physical::get_properties;
            }
            zeGetSamplerProcAddrTable { 0 zeSamplerCreate; 0 zeSamplerDestroy; }
            zeGetVirtualMemProcAddrTable {
                 0 zeVirtualMemReserve => memory::virtual_memory::reserve;
                 0 zeVirtualMemFree => memory::virtual_memory::free;
                 0 zeVirtualMemQueryPageSize => memory::virtual_memory::query_page_size;
                 0 zeVirtualMemMap => memory::virtual_memory::map;
                 0 zeVirtualMemUnmap => memory::virtual_memory::unmap;
                 0 zeVirtualMemSetAccessAttribute => memory::virtual_memory::set_access_attribute;
                 0 zeVirtualMemGetAccessAttribute => memory::virtual_memory::get_access_attribute;
            }
            zeGetFabricEdgeExpProcAddrTable {
                 4 zeFabricEdgeGetExp => discovery::fabric::get_edges;
                 4 zeFabricEdgeGetVerticesExp; 4 zeFabricEdgeGetPropertiesExp;
            }
            zeGetFabricVertexExpProcAddrTable {
                 4 zeFabricVertexGetExp => discovery::fabric::get;
                 4 zeFabricVertexGetSubVerticesExp => discovery::fabric::get_sub_vertices;
                 4 zeFabricVertexGetPropertiesExp => discovery::fabric::get_properties;
                 4 zeFabricVertexGetDeviceExp => discovery::fabric::get_device;
            }
            zeGetExecutableGraphProcAddrTable {
                17 zeExecutableGraphGetSourceGraphExt => commands::graph::get_source;
                17 zeExecutableGraphDestroyExt => commands::graph::destroy_executable;
            }
            zeGetGraphProcAddrTable {
                17 zeGraphCreateExt => commands::graph::create;
                17 zeGraphGetPrimaryCommandListExt => commands::graph::get_primary_list;
                17 zeGraphSetDestructionCallbackExt => commands::graph::set_destruction_callback;
                17 zeGraphInstantiateExt => commands::graph::instantiate;
                17 zeGraphIsEmptyExt => commands::graph::is_empty;
                17 zeGraphDumpContentsExt;
                17 zeGraphDestroyExt => commands::graph::destroy;
            }
            zetGetMetricDecoderExpProcAddrTable {
                11 zetMetricDecoderCreateExp; 11 zetMetricDecoderDestroyExp; 11 zetMetricDecoderGetDecodableMetricsExp;
            }
            zetGetMetricProgrammableExpProcAddrTable {
                 9 zetMetricProgrammableGetExp; 9 zetMetricProgrammableGetPropertiesExp;
                 9 zetMetricProgrammableGetParamInfoExp; 9 zetMetricProgrammableGetParamValueInfoExp;
            }
            zetGetMetricTracerExpProcAddrTable {
                11 zetMetricTracerCreateExp; 11 zetMetricTracerDestroyExp; 11 zetMetricTracerEnableExp;
                11 zetMetricTracerDisableExp; 11 zetMetricTracerReadDataExp; 11 zetMetricTracerDecodeExp;
            }
            zetGetDeviceProcAddrTable { 0 zetDeviceGetDebugProperties; }
            zetGetDeviceExpProcAddrTable {
                11 zetDeviceGetConcurrentMetricGroupsExp; 11 zetDeviceCreateMetricGroupsFromMetricsExp;
                13 zetDeviceEnableMetricsExp; 13 zetDeviceDisableMetricsExp;
            }
            zetGetContextProcAddrTable { 0 zetContextActivateMetricGroups; }
            zetGetCommandListProcAddrTable {
                 0 zetCommandListAppendMetricStreamerMarker; 0 zetCommandListAppendMetricQueryBegin;
                 0 zetCommandListAppendMetricQueryEnd; 0 zetCommandListAppendMetricMemoryBarrier;
            }
            zetGetCommandListExpProcAddrTable { 13 zetCommandListAppendMarkerExp; }
            zetGetKernelProcAddrTable { 0 zetKernelGetProfileInfo; }
            zetGetModuleProcAddrTable { 0 zetModuleGetDebugInfo; }
            zetGetDebugProcAddrTable {
                 0 zetDebugAttach; 0 zetDebugDetach; 0 zetDebugReadEvent; 0 zetDebugAcknowledgeEvent;
                 0 zetDebugInterrupt; 0 zetDebugResume; 0 zetDebugReadMemory; 0 zetDebugWriteMemory;
                 0 zetDebugGetRegisterSetProperties; 0 zetDebugReadRegisters; 0 zetDebugWriteRegisters;
                 5 zetDebugGetThreadRegisterSetProperties;
            }
            zetGetMetricProcAddrTable { 0 zetMetricGet; 0 zetMetricGetProperties; }
            zetGetMetricExpProcAddrTable {
                 9 zetMetricCreateFromProgrammableExp; 9 zetMetricDestroyExp; 12 zetMetricCreateFromProgrammableExp2;
            }
            zetGetMetricGroupProcAddrTable {
                 0 zetMetricGroupGet; 0 zetMetricGroupGetProperties; 0 zetMetricGroupCalculateMetricValues;
            }
            zetGetMetricGroupExpProcAddrTable {
                 2 zetMetricGroupCalculateMultipleMetricValuesExp; 5 zetMetricGroupGetGlobalTimestampsExp;
                 6 zetMetricGroupGetExportDataExp; 6 zetMetricGroupCalculateMetricExportDataExp;
                 9 zetMetricGroupCreateExp; 9 zetMetricGroupAddMetricExp; 9 zetMetricGroupRemoveMetricExp;
                 9 zetMetricGroupCloseExp; 9 zetMetricGroupDestroyExp;
            }
            zetGetMetricQueryProcAddrTable {
                 0 zetMetricQueryCreate; 0 zetMetricQueryDestroy; 0 zetMetricQueryReset; 0 zetMetricQueryGetData;
            }
            zetGetMetricQueryPoolProcAddrTable { 0 zetMetricQueryPoolCreate; 0 zetMetricQueryPoolDestroy; }
            zetGetMetricStreamerProcAddrTable {
                 0 zetMetricStreamerOpen; 0 zetMetricStreamerClose; 0 zetMetricStreamerReadData;
            }
            zetGetTracerExpProcAddrTable {
                 0 zetTracerExpCreate; 0 zetTracerExpDestroy; 0 zetTracerExpSetPrologues; 0 zetTracerExpSetEpilogues;
                 0 zetTracerExpSetEnabled;
            }
            zesGetGlobalProcAddrTable { 5 zesInit; }
            zesGetDeviceProcAddrTable {
                 0 zesDeviceGetProperties; 0 zesDeviceGetState; 0 zesDeviceReset; 0 zesDeviceProcessesGetState;
                 0 zesDevicePciGetProperties; 0 zesDevicePciGetState; 0 zesDevicePciGetBars; 0 zesDevicePciGetStats;
                 0 zesDeviceEnumDiagnosticTestSuites; 0 zesDeviceEnumEngineGroups; 0 zesDeviceEventRegister;
                 0 zesDeviceEnumFabricPorts; 0 zesDeviceEnumFans; 0 zesDeviceEnumFirmwares;
                 0 zesDeviceEnumFrequencyDomains; 0 zesDeviceEnumLeds; 0 zesDeviceEnumMemoryModules;
                 0 zesDeviceEnumPerformanceFactorDomains; 0 zesDeviceEnumPowerDomains; 3 zesDeviceGetCardPowerDomain;
                 0 zesDeviceEnumPsus; 0 zesDeviceEnumRasErrorSets; 0 zesDeviceEnumSchedulers;
                 0 zesDeviceEnumStandbyDomains; 0 zesDeviceEnumTemperatureSensors; 4 zesDeviceEccAvailable;
                 4 zesDeviceEccConfigurable; 4 zesDeviceGetEccState; 4 zesDeviceSetEccState; 5 zesDeviceGet;
                 5 zesDeviceSetOverclockWaiver; 5 zesDeviceGetOverclockDomains; 5 zesDeviceGetOverclockControls;
                 5 zesDeviceResetOverclockSettings; 5 zesDeviceReadOverclockState; 5 zesDeviceEnumOverclockDomains;
                 7 zesDeviceResetExt; 15 zesDevicePciLinkSpeedUpdateExt;
            }
            zesGetDeviceExpProcAddrTable {
                 9 zesDeviceGetSubDevicePropertiesExp; 9 zesDeviceEnumActiveVFExp; 10 zesDeviceEnumEnabledVFExp;
            }
            zesGetDriverProcAddrTable {
                 0 zesDriverEventListen; 1 zesDriverEventListenEx; 5 zesDriverGet; 8 zesDriverGetExtensionProperties;
                 8 zesDriverGetExtensionFunctionAddress;
            }
            zesGetDriverExpProcAddrTable { 9 zesDriverGetDeviceByUuidExp; }
            zesGetDiagnosticsProcAddrTable {
                 0 zesDiagnosticsGetProperties; 0 zesDiagnosticsGetTests; 0 zesDiagnosticsRunTests;
            }
            zesGetEngineProcAddrTable { 0 zesEngineGetProperties; 0 zesEngineGetActivity; 7 zesEngineGetActivityExt; }
            zesGetFabricPortProcAddrTable {
                 0 zesFabricPortGetProperties; 0 zesFabricPortGetLinkType; 0 zesFabricPortGetConfig;
                 0 zesFabricPortSetConfig; 0 zesFabricPortGetState; 0 zesFabricPortGetThroughput;
                 7 zesFabricPortGetFabricErrorCounters; 7 zesFabricPortGetMultiPortThroughput;
            }
            zesGetFanProcAddrTable {
                 0 zesFanGetProperties; 0 zesFanGetConfig; 0 zesFanSetDefaultMode; 0 zesFanSetFixedSpeedMode;
                 0 zesFanSetSpeedTableMode; 0 zesFanGetState;
            }
            zesGetFirmwareProcAddrTable {
                 0 zesFirmwareGetProperties; 0 zesFirmwareFlash; 8 zesFirmwareGetFlashProgress;
                 9 zesFirmwareGetConsoleLogs;
            }
            zesGetFirmwareExpProcAddrTable { 9 zesFirmwareGetSecurityVersionExp; 9 zesFirmwareSetSecurityVersionExp; }
            zesGetFrequencyProcAddrTable {
                 0 zesFrequencyGetProperties; 0 zesFrequencyGetAvailableClocks; 0 zesFrequencyGetRange;
                 0 zesFrequencySetRange; 0 zesFrequencyGetState; 0 zesFrequencyGetThrottleTime;
                 0 zesFrequencyOcGetCapabilities; 0 zesFrequencyOcGetFrequencyTarget;
                 0 zesFrequencyOcSetFrequencyTarget; 0 zesFrequencyOcGetVoltageTarget; 0 zesFrequencyOcSetVoltageTarget;
                 0 zesFrequencyOcSetMode; 0 zesFrequencyOcGetMode; 0 zesFrequencyOcGetIccMax; 0 zesFrequencyOcSetIccMax;
                 0 zesFrequencyOcGetTjMax; 0 zesFrequencyOcSetTjMax;
            }
            zesGetLedProcAddrTable { 0 zesLedGetProperties; 0 zesLedGetState; 0 zesLedSetState; 0 zesLedSetColor; }
            zesGetMemoryProcAddrTable { 0 zesMemoryGetProperties; 0 zesMemoryGetState; 0 zesMemoryGetBandwidth; }
            zesGetOverclockProcAddrTable {
                 5 zesOverclockGetDomainProperties; 5 zesOverclockGetDomainVFProperties;
                 5 zesOverclockGetDomainControlProperties; 5 zesOverclockGetControlCurrentValue;
                 5 zesOverclockGetControlPendingValue; 5 zesOverclockSetControlUserValue; 5 zesOverclockGetControlState;
                 5 zesOverclockGetVFPointValues; 5 zesOverclockSetVFPointValues;
            }
            zesGetPerformanceFactorProcAddrTable {
                 0 zesPerformanceFactorGetProperties; 0 zesPerformanceFactorGetConfig; 0 zesPerformanceFactorSetConfig;
            }
            zesGetPowerProcAddrTable {
                 0 zesPowerGetProperties; 0 zesPowerGetEnergyCounter; 0 zesPowerGetLimits; 0 zesPowerSetLimits;
                 0 zesPowerGetEnergyThreshold; 0 zesPowerSetEnergyThreshold; 4 zesPowerGetLimitsExt;
                 4 zesPowerSetLimitsExt; 16 zesPowerGetUsage; 16 zesPowerGetLimitsExt2; 16 zesPowerSetLimitsExt2;
            }
            zesGetPsuProcAddrTable { 0 zesPsuGetProperties; 0 zesPsuGetState; }
            zesGetRasProcAddrTable { 0 zesRasGetProperties; 0 zesRasGetConfig; 0 zesRasSetConfig; 0 zesRasGetState; }
            zesGetRasExpProcAddrTable {
                 7 zesRasGetStateExp; 7 zesRasClearStateExp; 16 zesRasGetSupportedCategoriesExp; 16 zesRasGetStateExp2;
                16 zesRasGetConfigExp; 16 zesRasSetConfigExp;
            }
            zesGetSchedulerProcAddrTable {
                 0 zesSchedulerGetProperties; 0 zesSchedulerGetCurrentMode; 0 zesSchedulerGetTimeoutModeProperties;
                 0 zesSchedulerGetTimesliceModeProperties; 0 zesSchedulerSetTimeoutMode; 0 zesSchedulerSetTimesliceMode;
                 0 zesSchedulerSetExclusiveMode; 0 zesSchedulerSetComputeUnitDebugMode;
            }
            zesGetStandbyProcAddrTable { 0 zesStandbyGetProperties; 0 zesStandbyGetMode; 0 zesStandbySetMode; }
            zesGetTemperatureProcAddrTable {
                 0 zesTemperatureGetProperties; 0 zesTemperatureGetConfig; 0 zesTemperatureSetConfig;
                 0 zesTemperatureGetState;
            }
            zesGetVFManagementExpProcAddrTable {
                 9 zesVFManagementGetVFPropertiesExp; 9 zesVFManagementGetVFMemoryUtilizationExp;
                 9 zesVFManagementGetVFEngineUtilizationExp; 9 zesVFManagementSetVFTelemetryModeExp;
                 9 zesVFManagementSetVFTelemetrySamplingIntervalExp; 10 zesVFManagementGetVFCapabilitiesExp;
                10 zesVFManagementGetVFMemoryUtilizationExp2; 10 zesVFManagementGetVFEngineUtilizationExp2;
                12 zesVFManagementGetVFCapabilitiesExp2;
            }
            zerGetGlobalProcAddrTable {
                14 zerGetLastErrorDescription => discovery::driver::runtime_get_last_error_description;
                14 zerTranslateDeviceHandleToIdentifier => discovery::driver::translate_device_handle_to_identifier;
                14 zerTranslateIdentifierToDeviceHandle => discovery::driver::translate_identifier_to_device_handle;
                14 zerGetDefaultContext => discovery::driver::runtime_get_default_context;
            }
        }
    };
}
