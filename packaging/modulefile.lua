-- urscope for Lmod. It stays in its tree, or a link leads to it: it finds the tree by its own place, so the tree may lie anywhere.

local own = "^(.*)/share/modulefiles/urscope/[^/]*$"
local root = myFileName():match(own)
if (not (root and isFile(pathJoin(root, "bin/urscope")))) then
   local name = myFileName():gsub("'", "'\\''")
   root = subprocess("readlink -f -- '" .. name .. "'"):gsub("%s+$", ""):match(own)
end
whatis("Name: urscope")
whatis("Version: @VERSION@")
whatis("Description: @SUMMARY@")
help([[@SUMMARY@.

    urscope run -- ./program     trace a program, and judge what it did
    urscope doctor               check the machine
]])

if (root and isFile(pathJoin(root, "bin/urscope"))) then
   local lib = pathJoin(root, isDir(pathJoin(root, "lib/urscope")) and "lib" or "lib64")
   prepend_path("PATH", pathJoin(root, "bin"))
   prepend_path("CMAKE_PREFIX_PATH", root)
   prepend_path("PKG_CONFIG_PATH", pathJoin(lib, "pkgconfig"))
   prepend_path("PYTHONPATH", pathJoin(lib, "urscope/python"))
   -- Without MANPATH, man looks beside the folders of PATH; with one that has no other folder in it, it would look nowhere else.
   if (os.getenv("MANPATH")) then
      prepend_path("MANPATH", pathJoin(root, "share/man"))
   end
else
   LmodError("urscope's modulefile was taken out of its tree: link to " ..
             "share/modulefiles/urscope/@VERSION@.lua there instead, or add share/modulefiles to MODULEPATH")
end
