vcbatch job exec nope -- true
vcbatch job exec waits-too --task nope -- true
vcbatch job exec waits-too --index 4 -- true
vcbatch job exec waits-too --index 0 -c nope -- true
vcbatch job exec train -- true
vcbatch job exec fails-r2 -- true
