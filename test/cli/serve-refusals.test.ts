/** `svcctl serve` reports in one line why it cannot start, and leaves nothing running. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { occupyPort } from '../support/free-port.ts';
import { ownEnvironment } from '../support/service.ts';

interface Ended {
  readonly code: number | null;
  readonly errors: string;
}

async function serve(environment: Readonly<Record<string, string>>, args: readonly string[] = []): Promise<Ended> {
  const child = spawn(process.execPath, ['src/cli/svcctl.mjs', 'serve', ...args], {
    env: { ...ownEnvironment(), SVC_RUNTIME: 'process', ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, errors };
}

describe('svcctl serve', () => {
  let dir = '';
  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'svc-refusal-'));
    await writeFile(path.join(dir, 'file'), '');
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  const own = (): Record<string, string> => ({ SVC_CONFIG_DIR: path.join(dir, 'config'), SVC_STATE_DIR: path.join(dir, 'state') });

  test.each([
    ['SVC_LISTEN', 'foo', 'SVC_LISTEN: Use an address and a port'],
    ['SVC_RUNTIME', 'docker', 'SVC_RUNTIME: Docker is not supported: use "podman", which runs the same images, or "process"'],
    ['SVC_RUNTIME', 'lxc', 'SVC_RUNTIME: Use one of "auto", "podman", "kube", "process", not "lxc"'],
    ['SVC_PARK_LIMT', '3', 'Unknown setting "SVC_PARK_LIMT"; did you mean "SVC_PARK_LIMIT"?'],
    ['SVC_PORT_RANGE', '5-3', 'SVC_PORT_RANGE: Use the first and the last port'],
    ['SVC_CORS_ORIGINS', '*', 'Write each origin as scheme, host and port'],
    ['SVC_CORS_ORIGINS', 'https://a.test/chat', 'Write each origin as scheme, host and port'],
    ['SVC_ALLOWED_HOSTS', 'https://a.test', 'Write host names without scheme and port'],
    ['SVC_ALLOWED_HOSTS', 'a.test:8080', 'Write host names without scheme and port'],
    ['SVC_PARK_TIMEOUT', 'soon', 'Write a duration'],
  ])('refuses %s=%s in one line that says what would be valid', async (key, value, message) => {
    const { code, errors } = await serve({ ...own(), [key]: value });
    expect(code).toBe(64);
    expect(errors).toContain(message);
    expect(errors.trim().split('\n')).toHaveLength(1);
  });

  test('refuses a recording of hardware that is missing or has a mistake, and says where', async () => {
    const absent = path.join(dir, 'absent.json');
    expect(await serve({ ...own(), SVC_HARDWARE_FILE: absent })).toMatchObject({
      code: 1,
      errors: expect.stringContaining(`"${absent}" cannot be read`),
    });
    const broken = path.join(dir, 'broken.json');
    await writeFile(broken, '{"format":1,"abuot":"x"}');
    const { code, errors } = await serve({ ...own(), SVC_HARDWARE_FILE: broken });
    expect(code).toBe(1);
    expect(errors).toContain(`The recording "${broken}" is not valid: about: Set "about": it is required`);
    expect(errors).toContain('Unknown key "abuot"; did you mean "about"?');
    expect(errors.trim().split('\n')).toHaveLength(1);
  });

  test('names the address if it is in use', async () => {
    const { port, close } = await occupyPort(0);
    const ended = await serve({ ...own(), SVC_LISTEN: `127.0.0.1:${port}` });
    await close();
    expect(ended).toMatchObject({ code: 1, errors: expect.stringContaining(`"127.0.0.1:${port}"`) });
  });

  test.each([[[]], [['--checkout']]])('names the directory if it cannot be used (%j)', async (args) => {
    const ended = await serve({ ...own(), SVC_STATE_DIR: path.join(dir, 'file/state') }, args);
    expect(ended).toMatchObject({ code: 1, errors: expect.stringContaining(path.join(dir, 'file/state')) });
    expect(ended.errors.trim().split('\n')).toHaveLength(1);
  });
});
