import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { isUnsafeVariable } from '../../../src/api/manage/decide/unsafe-edits.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { startWorld, type World } from './world.ts';

const PRIMARY = SlotName.parse('primary');
/** What somebody with access to the file has written. */
const BY_HAND =
  'backend = "cpu"\n[model]\ndefault = "demo-fox"\nargs = ["--log-file", "/var/log/fox"]\n[env]\nLD_LIBRARY_PATH = "/opt/rocm/lib"\n';

let world: World;
beforeEach(async () => {
  world = await startWorld();
  world.slots.texts.set(PRIMARY, BY_HAND);
});
afterEach(() => world.close());

async function send(method: string, path: string, body: object) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(world.url + path, { method, headers, body: JSON.stringify(body) });
  const text = await response.text();
  const parsed: { error?: { code: string; param: string; message: string } } = JSON.parse(text === '' ? '{}' : text);
  return { status: response.status, error: parsed.error };
}

const spec = (env: object, args: readonly string[] = []) => ({ backend: 'cpu', model: { default: 'demo-fox', args }, env });

/** Every way to write a slot through the API. */
const WAYS: readonly [string, (spec: object) => ReturnType<typeof send>][] = [
  ['PUT of a new slot', (document) => send('PUT', '/api/slots/other', { spec: { provider: 'gguf', ...document } })],
  ['PUT', (document) => send('PUT', '/api/slots/primary', { spec: document })],
  ['PATCH', (document) => send('PATCH', '/api/slots/primary', { spec: document })],
  ['apply', (document) => send('POST', '/api/apply', { slots: [{ name: 'primary', spec: document }] })],
  ['a dry run of apply', (document) => send('POST', '/api/apply', { dry_run: true, slots: [{ name: 'primary', spec: document }] })],
];

describe.each(WAYS)('%s', (_way, write) => {
  test.each([
    ['a variable that makes a server load code', spec({ NODE_OPTIONS: '--require /tmp/x.js' }), 'env.NODE_OPTIONS'],
    ['such a variable in other case', spec({ ld_preload: '/tmp/x.so' }), 'env.ld_preload'],
    ['another value of such a variable', spec({ LD_LIBRARY_PATH: '/tmp' }), 'env.LD_LIBRARY_PATH'],
    ['an argument that writes a file', spec({}, ['--log-file', '/etc/cron.d/x']), 'model.args'],
    ['such an argument with its value', spec({}, ['--log-file=/etc/cron.d/x']), 'model.args'],
    ['an argument that nobody knows', spec({}, ['--ctx-size', '4096', '--new-flag']), 'model.args'],
    ['a value without a flag', spec({}, ['/etc/passwd']), 'model.args'],
    ['a directory of nodes', { ...spec({}), storage: { host_path: '/etc' } }, 'storage.host_path'],
    [
      'a server elsewhere',
      { ...spec({}), provider: 'remote', model: { default: 'a', args: [] }, remote: { url: 'https://a.example/v1' } },
      'remote.url',
    ],
    ['another program', { ...spec({}), program: { path: '/tmp/x' } }, 'program.path'],
    ['another image', { ...spec({}), program: { image: 'localhost/x:v1' } }, 'program.image'],
    ['a service account', { ...spec({}), service_account_name: 'admin' }, 'service_account_name'],
    ['labels of pods, which network policies select', { ...spec({}), pod: { labels: { app: 'bank' } } }, 'pod.labels'],
    ['volumes', { ...spec({}), pod: { volumes: [{ name: 'a', host_path: { path: '/' } }] } }, 'pod.volumes'],
    ['a security context', { ...spec({}), pod: { security_context: { run_as_user: 0 } } }, 'pod.security_context'],
    ['privileges', { ...spec({}), pod: { server: { security_context: { privileged: true } } } }, 'pod.server.security_context'],
    ['variables of Secrets', { ...spec({}), pod: { server: { env_from: [{ secret_ref: { name: 'bank' } }] } } }, 'pod.server.env_from'],
    ['variables of the download', { ...spec({}), pod: { model: { env: [{ name: 'NODE_OPTIONS', value: '' }] } } }, 'pod.model.env'],
  ])('refuses %s, and changes nothing', async (_what, document, param) => {
    const { status, error } = await write(document);
    expect([status, error?.code, error?.param]).toEqual([422, 'slot.invalid', param]);
    expect(error?.message).toContain('"SVC_ALLOW_UNSAFE_EDITS"');
    expect([...world.slots.texts]).toEqual([[PRIMARY, BY_HAND]]);
  });

  test('accepts variables and arguments that are known to be safe', async () => {
    const document = spec({ HSA_OVERRIDE_GFX_VERSION: '11.0.0', CUDA_VISIBLE_DEVICES: '0' }, [
      '--ctx-size',
      '4096',
      '-ngl',
      '20',
      '--temp',
      '-1',
    ]);
    expect((await write(document)).status).toBeLessThan(300);
  });
});

describe('the pods of a slot', () => {
  const declared = `${BY_HAND}[storage]\nhost_path = "/srv/models"\n[pod]\nlabels = { team = "search" }\n[pod.server]\nenv = [{ name = "MODE", value = "quiet" }]\n`;

  test('can get other resources and other places through the API', async () => {
    const pod = {
      server: { resources: { limits: { cpu: 2 } } },
      model: { resources: { requests: { memory: '64Mi' } } },
      topology_spread_constraints: [{ max_skew: 1, topology_key: 'zone', when_unsatisfiable: 'ScheduleAnyway' }],
    };
    expect((await send('PATCH', '/api/slots/primary', { spec: { pod, storage: { size: '20Gi' } } })).status).toBe(200);
  });

  test('keep what their slot declares, also with other edits of the same table', async () => {
    world.slots.texts.set(PRIMARY, declared);
    const more = { pod: { server: { resources: { limits: { cpu: 2 } } } } };
    expect((await send('PATCH', '/api/slots/primary', { spec: more })).status).toBe(200);
    const other = await send('PATCH', '/api/slots/primary', { spec: { pod: { labels: { team: 'bank' } } } });
    expect([other.status, other.error?.param]).toEqual([422, 'pod.labels']);
    const path = await send('PATCH', '/api/slots/primary', { spec: { storage: { host_path: '/' } } });
    expect([path.status, path.error?.param]).toEqual([422, 'storage.host_path']);
  });
});

describe('what is in the file of a slot', () => {
  test('stays, and does not hinder other edits', async () => {
    expect((await send('POST', '/api/slots/primary/unload', {})).status).toBe(202);
    expect((await send('POST', '/api/slots/primary/load', { model: 'demo-owl' })).status).toBe(202);
    expect((await send('PATCH', '/api/slots/primary', { spec: { priority: 3, env: { HF_TOKEN: 'x' } } })).status).toBe(200);
    const kept = spec({ LD_LIBRARY_PATH: '/opt/rocm/lib' }, ['--ctx-size', '4096', '--log-file', '/var/log/fox']);
    expect((await send('PUT', '/api/slots/primary', { spec: kept })).status).toBe(200);
  });

  test('can be removed through the API, and then not added again', async () => {
    expect((await send('PATCH', '/api/slots/primary', { spec: { env: { LD_LIBRARY_PATH: null } } })).status).toBe(200);
    const again = await send('PATCH', '/api/slots/primary', { spec: { env: { LD_LIBRARY_PATH: '/opt/rocm/lib' } } });
    expect(again.status).toBe(422);
  });

  test('does not become safe for another kind of server', async () => {
    const { status, error } = await send('PATCH', '/api/slots/primary', { spec: { provider: 'stt' } });
    expect([status, error?.param]).toEqual([422, 'model.args']);
  });
});

describe('a variable', () => {
  test.each(
    [
      'NODE_OPTIONS NODE_PATH LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES GLIBC_TUNABLES PATH HOME SHELL ENV IFS',
      'PYTHONPATH PYTHONSTARTUP PYTHONHOME PERL5OPT PERL5LIB RUBYOPT RUBYLIB BASH_ENV JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH LUA_INIT',
      'GGML_BACKEND_PATH LLAMA_ARG_MODEL LLAMA_LOG_FILE LLAMA_CACHE HSA_TOOLS_LIB VK_LAYER_PATH VK_ICD_FILENAMES VK_INSTANCE_LAYERS OPENSSL_CONF',
      'SSLKEYLOGFILE GCONV_PATH XDG_CONFIG_HOME TMPDIR NCCL_NET_PLUGIN OMP_TOOL_LIBRARIES CUDA_INJECTION64_PATH TORCH_EXTENSIONS_DIR',
      'TRITON_CACHE_DIR HF_HOME HF_ENDPOINT GIT_SSH_COMMAND MALLOC_CONF _RJEM_MALLOC_CONF DOTNET_STARTUP_HOOKS CORECLR_PROFILER_PATH',
    ].flatMap((line) => line.split(' ')),
  )('"%s" is unsafe', (name) => {
    expect([isUnsafeVariable(name), isUnsafeVariable(name.toLowerCase())]).toEqual([true, true]);
  });

  test.each(
    'HSA_OVERRIDE_GFX_VERSION CUDA_VISIBLE_DEVICES GGML_VK_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES OMP_NUM_THREADS HF_TOKEN GGML_CUDA_ENABLE_UNIFIED_MEMORY PYTORCH_CUDA_ALLOC_CONF TZ LANG'.split(
      ' ',
    ),
  )('"%s" is safe', (name) => expect(isUnsafeVariable(name)).toBe(false));
});
