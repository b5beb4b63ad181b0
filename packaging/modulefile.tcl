#%Module1.0
# urscope for Environment Modules. It stays in its tree, or a link leads to it: it finds the tree by its own place, so the tree may lie
# anywhere.

proc ModulesHelp { } {
    puts stderr "@SUMMARY@."
    puts stderr ""
    puts stderr "    urscope run -- ./program     trace a program, and judge what it did"
    puts stderr "    urscope doctor               check the machine"
}
module-whatis "@SUMMARY@"
conflict urscope

# With a name behind it, the path is resolved including the link that the file itself may be.
set own [file dirname [file normalize [file join $ModulesCurrentModulefile x]]]
set root [file dirname [file dirname [file dirname [file dirname $own]]]]
if {![file isfile [file join $root bin urscope]]} {
    puts stderr "urscope's modulefile was taken out of its tree: link to share/modulefiles/urscope/@VERSION@ there instead, or add\
        share/modulefiles to MODULEPATH"
    break
}
if {[file isdirectory [file join $root lib urscope]]} {
    set lib [file join $root lib]
} else {
    set lib [file join $root lib64]
}

prepend-path PATH [file join $root bin]
prepend-path CMAKE_PREFIX_PATH $root
prepend-path PKG_CONFIG_PATH [file join $lib pkgconfig]
prepend-path PYTHONPATH [file join $lib urscope python]
# Without MANPATH, man looks beside the folders of PATH; with one that has no other folder in it, it would look nowhere else.
if {[info exists env(MANPATH)]} {
    prepend-path MANPATH [file join $root share man]
}
