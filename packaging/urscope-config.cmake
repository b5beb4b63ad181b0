# Finds urscope by the place of this file, so that its tree may lie anywhere, and defines urscope_add_test(). CMake 3.16 or later.
#
#   find_package(urscope REQUIRED)
#   urscope_add_test(NAME exchange COMMAND exchange --size 8)
#
# It sets URSCOPE_EXECUTABLE, and the target urscope::urscope, which is the command.

get_filename_component(_urscope_root "${CMAKE_CURRENT_LIST_FILE}" REALPATH)
get_filename_component(_urscope_root "${_urscope_root}/../../../.." ABSOLUTE)
set(URSCOPE_EXECUTABLE "${_urscope_root}/bin/urscope")
unset(_urscope_root)
if(NOT EXISTS "${URSCOPE_EXECUTABLE}")
  set(urscope_FOUND FALSE)
  set(urscope_NOT_FOUND_MESSAGE "${CMAKE_CURRENT_LIST_FILE} was taken out of its tree: ${URSCOPE_EXECUTABLE} is not there")
  return()
endif()

# A variable is seen by the folder that calls find_package() and by those below it only; functions are seen everywhere.
set_property(GLOBAL PROPERTY URSCOPE_EXECUTABLE "${URSCOPE_EXECUTABLE}")
if(NOT TARGET urscope::urscope)
  add_executable(urscope::urscope IMPORTED GLOBAL)
  set_target_properties(urscope::urscope PROPERTIES IMPORTED_LOCATION "${URSCOPE_EXECUTABLE}")
endif()

set(URSCOPE_DEVICE native CACHE STRING "The device of tests under urscope: native or software")
set_property(CACHE URSCOPE_DEVICE PROPERTY STRINGS native software)

# urscope_add_test(NAME <name> COMMAND <target or program> [<argument>...]
#                  [DEVICE native|software] [FAIL_ON error|warning|note|never]
#                  [SUPPRESSIONS <file>] [BASELINE <file>] [OPTIONS <option of urscope run>...]
#                  [WORKING_DIRECTORY <folder>] [CONFIGURATIONS <configuration>...])
#
# Adds a test that runs the command under urscope. It fails when the command fails, when there are findings, and when the run could not be
# judged. Empty arguments are left out. DEVICE is the value of the cache variable URSCOPE_DEVICE, unless it is given. Relative paths of files begin at the current source
# folder. The traces go to urscope/<name> in the current binary folder, and a report for test servers to urscope/<name>.xml.
# The test has the label urscope.
function(urscope_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 test "" "NAME;DEVICE;FAIL_ON;SUPPRESSIONS;BASELINE;WORKING_DIRECTORY"
    "COMMAND;OPTIONS;CONFIGURATIONS")
  if(DEFINED test_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "urscope_add_test: unknown arguments: ${test_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT test_NAME OR NOT test_COMMAND)
    message(FATAL_ERROR "urscope_add_test: give NAME and COMMAND, as in urscope_add_test(NAME exchange COMMAND exchange)")
  endif()
  if(NOT test_DEVICE)
    set(test_DEVICE "${URSCOPE_DEVICE}")
  endif()
  if(NOT test_DEVICE MATCHES "^(native|software)$")
    message(FATAL_ERROR "urscope_add_test: the device '${test_DEVICE}' of ${test_NAME} is unknown: give native or software")
  endif()

  set(reports "${CMAKE_CURRENT_BINARY_DIR}/urscope")
  string(REGEX REPLACE "[^A-Za-z0-9_.+-]" "_" file "${test_NAME}")
  file(MAKE_DIRECTORY "${reports}")
  set(run run --device ${test_DEVICE} --dir "${reports}/${file}" --output "junit=${reports}/${file}.xml")
  if(test_FAIL_ON)
    list(APPEND run --fail-on ${test_FAIL_ON})
  endif()
  foreach(option IN ITEMS SUPPRESSIONS BASELINE)
    if(test_${option})
      get_filename_component(path "${test_${option}}" ABSOLUTE)
      string(TOLOWER "--${option}" name)
      list(APPEND run ${name} "${path}")
    endif()
  endforeach()

  # As add_test() does: the first word may be a target. A semicolon in an argument must not divide it.
  set(command)
  foreach(word IN LISTS test_COMMAND)
    if(NOT command AND TARGET "${word}")
      set(word "$<TARGET_FILE:${word}>")
    endif()
    string(REPLACE ";" "\\;" word "${word}")
    list(APPEND command "${word}")
  endforeach()
  set(more)
  if(test_WORKING_DIRECTORY)
    list(APPEND more WORKING_DIRECTORY "${test_WORKING_DIRECTORY}")
  endif()
  if(test_CONFIGURATIONS)
    list(APPEND more CONFIGURATIONS ${test_CONFIGURATIONS})
  endif()
  get_property(urscope GLOBAL PROPERTY URSCOPE_EXECUTABLE)
  add_test(NAME "${test_NAME}" COMMAND "${urscope}" ${run} ${test_OPTIONS} -- ${command} ${more})
  set_property(TEST "${test_NAME}" APPEND PROPERTY LABELS urscope)
endfunction()
