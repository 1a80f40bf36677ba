/** The real llama-server as a program of this machine, taken out of the toolbox image: the machine may have other libraries than the image. */
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const IMAGE = 'localhost/svc-toolbox-gguf-cpu:v1';
const CACHE = path.resolve('.svc/llama-server');

/** Returns a directory with an executable `llama-server`, for the `PATH`. It is made once for each image. */
export async function directoryOfLlamaServer(): Promise<string> {
  const { stdout } = await run('podman', ['image', 'inspect', '--format', '{{.Id}}', IMAGE]);
  const directory = path.join(CACHE, stdout.trim().slice(0, 16));
  if (!(await exists(path.join(directory, 'llama-server')))) await extract(directory);
  return directory;
}

/** Another test may extract it at the same time. */
async function extract(directory: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const temporary = await mkdtemp(path.join(CACHE, 'part-'));
  try {
    await unpack(path.join(temporary, 'root'));
    await rename(path.join(temporary, 'root'), path.join(directory, 'root')).catch(async () => {
      await mkdir(directory, { recursive: true });
      if (!(await exists(path.join(directory, 'root')))) await rename(path.join(temporary, 'root'), path.join(directory, 'root'));
    });
    await writeFile(path.join(temporary, 'llama-server'), await script(path.join(directory, 'root')), { mode: 0o755 });
    await rename(path.join(temporary, 'llama-server'), path.join(directory, 'llama-server'));
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function unpack(root: string): Promise<void> {
  await mkdir(root, { recursive: true });
  const { stdout } = await run('podman', ['create', IMAGE]);
  const container = stdout.trim();
  try {
    const archive = `${root}.tar`;
    await run('podman', ['export', '--output', archive, container]);
    await run('tar', ['-x', '-f', archive, '-C', root, 'usr', 'lib', 'lib64']);
  } finally {
    await run('podman', ['rm', container]);
  }
}

/** Its own loader finds its libraries; it looks for its backends beside its program, which is then the loader. */
async function script(root: string): Promise<string> {
  const [libraries = ''] = (await readdir(path.join(root, 'usr', 'lib'))).filter((name) => name.endsWith('-linux-gnu'));
  const directory = path.join(root, 'usr', 'lib', libraries);
  const loader = (await readdir(directory)).find((name) => /^ld-linux.*\.so\.\d+$/.test(name)) ?? '';
  const backends = path.join(directory, 'ggml', 'backends0');
  for (const name of await readdir(backends)) {
    const link = path.join(directory, name);
    if (!(await exists(link))) await symlink(path.join(backends, name), link);
  }
  const program = path.join(root, 'usr', 'bin', 'llama-server');
  return `#!/bin/sh\nexec '${directory}/${loader}' --library-path '${directory}:${directory}/llama' --argv0 llama-server '${program}' "$@"\n`;
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
