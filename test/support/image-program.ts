/** Programs of images as programs of this machine, which may have other libraries: each gets a loader and libraries of its own. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CACHE = path.resolve('.svc/programs');

/** The program looks for the backends of ggml beside itself, which is then the loader. */
const COPY = `program=$(command -v "$1")
backends=$(echo /usr/lib/*-linux-gnu/ggml/backends*/*.so)
mkdir /out/lib
for file in "$program" $backends $(ldd "$program" $backends | grep -o '/[^ :]*' | sort -u); do cp -L "$file" /out/lib; done`;

/** Returns a directory with the executable program, for the `PATH`. It is made once for each image. */
export async function directoryOfProgram(image: string, program: string): Promise<string> {
  const { stdout } = await run('podman', ['image', 'inspect', '--format', '{{.Id}}', image]);
  const directory = path.join(CACHE, `${program}-${stdout.trim().slice(0, 16)}`);
  const isMade = (): boolean => existsSync(path.join(directory, program));
  if (isMade()) return directory;
  await mkdir(CACHE, { recursive: true });
  const temporary = await mkdtemp(path.join(CACHE, 'part-'));
  try {
    const options = ['--rm', '--network', 'none', '--user', '0', '--volume', `${temporary}:/out`, '--entrypoint', 'sh'];
    await run('podman', ['run', ...options, image, '-ec', COPY, 'sh', program]);
    const libraries = path.join(directory, 'lib');
    const loader = (await readdir(path.join(temporary, 'lib'))).find((name) => /^ld-linux.*\.so\.\d+$/.test(name)) ?? '';
    const command = `'${libraries}/${loader}' --library-path '${libraries}' --argv0 ${program} '${libraries}/${program}'`;
    await writeFile(path.join(temporary, program), `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 });
    await rename(temporary, directory).catch((error: unknown) => {
      // Another test has made it at the same time.
      if (!isMade()) throw error;
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return directory;
}
