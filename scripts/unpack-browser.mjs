// Unpacks the Chromium that npm brought, with its libraries, and says where its fonts are. Called by scripts/setup.
//
//   node scripts/unpack-browser.mjs FOLDER     FOLDER/node_modules is there; FOLDER/chromium is made

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';

const folder = path.resolve(process.argv[2] ?? '.');
const packed = path.join(folder, 'node_modules/@sparticuz/chromium/bin');
const unpacked = path.join(folder, 'chromium');
fs.mkdirSync(unpacked, { recursive: true });

for (const name of ['chromium.br', 'al2023.tar.br', 'swiftshader.tar.br']) {
  const bytes = zlib.brotliDecompressSync(fs.readFileSync(path.join(packed, name)));
  if (name.includes('.tar')) {
    execFileSync('tar', ['--extract', '--no-same-owner', '--directory', unpacked], { input: bytes });
  } else {
    fs.writeFileSync(path.join(unpacked, 'chromium'), bytes, { mode: 0o755 });
  }
}

// The same fonts on every machine, also on one that has none: pictures are alike, and text has a width. What is not asked for
// by its name gets one of these, so there is no other to be had.
const fonts = path.join(folder, 'fonts');
fs.mkdirSync(fonts, { recursive: true });
for (const name of ['Sans', 'Sans-Bold', 'Sans-Oblique', 'SansMono', 'SansMono-Bold']) {
  fs.copyFileSync(path.join(folder, `node_modules/dejavu-fonts-ttf/ttf/DejaVu${name}.ttf`), path.join(fonts, `${name}.ttf`));
}
// Their paths are relative, so that the folder can be moved; browser.mjs says where the cache is.
fs.writeFileSync(path.join(unpacked, 'fonts.conf'), `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">../fonts</dir>
  <cachedir prefix="xdg">fonts</cachedir>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`);
