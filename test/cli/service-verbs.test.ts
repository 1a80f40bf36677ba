import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { UNKNOWN_MODEL } from '../api/manage/world-models.ts';
import { startSvcctl, svcctl, type RunOptions } from './run-svcctl.ts';

const primary = SlotName.parse('primary');
let world: World;
beforeAll(async () => {
  world = await startWorld({ loadMs: 1000 });
  world.save(primary, '[model]\ndefault = "a"\n');
  await world.idle();
});
afterAll(() => world.close());

const run = (args: readonly string[], options: RunOptions = {}) =>
  svcctl(args, { ...options, env: { SVCCTL_SERVER: world.url, ...options.env } });

describe('svcctl get', () => {
  test('prints an aligned table without colours into a pipe', async () => {
    world.traffic.set('primary', { inFlight: 2, parked: 0 });
    const { code, out, err } = await run(['get', 'slots']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out.replaceAll(/\d+d/g, '9d')).toBe(
      'NAME     STATE  READY  UP-TO-DATE  MODEL  BUSY  SINCE  MESSAGE\nprimary  ready  yes    -           a      2     9d\n',
    );
  });

  test('shows how far the server is with a request', async () => {
    world.traffic.set('primary', { inFlight: 2, parked: 0, progress: { done: 3, total: 20 } });
    expect((await run(['get', 'slots'])).out).toMatch(/^primary .* a +2 \(3\/20\) +/m);
    world.traffic.set('primary', { inFlight: 2, parked: 0 });
  });

  test('-o json prints the answer of the API, and -o yaml prints the same', async () => {
    const json = await run(['get', 'slots', '-o', 'json']);
    const { slots } = JSON.parse(json.out);
    expect(slots).toHaveLength(1);
    expect(slots[0]).toMatchObject({ name: 'primary', spec: { model: { default: 'a' } }, status: { state: 'ready' }, generation: 1 });
    const yaml = await run(['get', 'slots', 'primary', '-o', 'yaml']);
    expect(yaml.out).toContain('slots:\n  - name: primary\n');
  });

  test('lists models, providers and pulls', async () => {
    expect((await run(['get', 'models'])).out).toMatch(/^demo-fox +chat +yes +293 KiB +1\.9 MiB +- +- +Apache-2\.0/m);
    expect((await run(['get', 'providers', '-o', 'wide'])).out).toContain('gguf  yes        cpu       chat');
    expect(await run(['get', 'pulls'])).toEqual({ code: 0, out: '', err: 'No downloads in progress\n' });
  });

  test('lists the pods of a cluster, and says that a machine has none', async () => {
    const none = 'No pods found; slots have pods only in a cluster\n';
    expect(await run(['get', 'pods'])).toEqual({ code: 0, out: '', err: none });
    const pod = { slot: SlotName.parse('primary'), phase: 'Running', ready: true, terminating: false, restarts: 0, createdAt: 0 } as const;
    const waiting = { reason: 'Unschedulable', message: 'No node has room' } as const;
    const pods = [
      { ...pod, name: 'p-1', node: 'worker-1', waiting: undefined },
      { ...pod, name: 'p-2', ready: false, phase: 'Pending', restarts: 2, node: undefined, waiting } as const,
      { ...pod, name: 'p-3', ready: false, terminating: true, node: 'worker-1', waiting: undefined },
    ];
    world.cluster = { replica: 'a', leader: 'a', leads: true, pods };
    expect((await run(['get', 'pods'])).out.split('\n').map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
      'NAME SLOT READY STATUS RESTARTS NODE AGE MESSAGE',
      'p-2 primary no Unschedulable 2 - - No node has room',
      'p-3 primary no Terminating 0 worker-1 -',
      'p-1 primary yes Running 0 worker-1 -',
      '',
    ]);
    expect((await run(['get', 'pod/p-2', '-o', 'name'])).out).toBe('pod/p-2\n');
    world.cluster = undefined;
  });

  test('--watch prints everything once, and then only the lines that have changed', async () => {
    world.save(SlotName.parse('quiet'), 'provider = "gguf"\n[model]\ndefault = "q"\n');
    await world.idle();
    const child = startSvcctl(['get', 'slots', '--watch'], { env: { SVCCTL_SERVER: world.url } });
    let out = '';
    const ended = new Promise((resolve) => child.once('close', resolve));
    await new Promise<void>((resolve) => {
      child.stdout?.on('data', (chunk: Buffer) => {
        if (out === '') world.traffic.set('primary', { inFlight: 7, parked: 0 });
        out += chunk.toString();
        // Another tenth of an image is a change.
        if (/a +7 +\d/.test(out)) world.traffic.set('primary', { inFlight: 7, parked: 0, progress: { done: 10, total: 20 } });
        if (/a +7 \(10\/20\) /.test(out) && world.slots.texts.delete(SlotName.parse('quiet')))
          world.save(primary, '[model]\ndefault = "a"\n# again\n');
        if (out.includes('slot/quiet deleted')) resolve();
      });
    });
    child.kill('SIGTERM');
    await ended;
    expect(out.match(/^NAME /gm)).toHaveLength(1);
    expect(out.match(/^quiet /gm)).toHaveLength(1);
    expect(out.match(/^primary /gm)?.length).toBeGreaterThan(1);
  });

  test('lists one thing by its full name, and names only with -o name', async () => {
    expect(await run(['get', 'slots', '-o', 'name'])).toEqual({ code: 0, out: 'slot/primary\n', err: '' });
    expect((await run(['get', 'slot/primary', '-o', 'yaml'])).out).toContain('slots:\n  - name: primary\n');
    expect(await run(['get', 'models', '-o', 'name'])).toMatchObject({
      code: 0,
      out: 'model/demo-fox\nmodel/qwen-coder\nmodel/sdxl-turbo\n',
    });
    expect(await run(['get', 'slot/nope'])).toMatchObject({ code: 1, err: expect.stringContaining('Slot "nope" not found') });
    expect(await run(['get', 'slot/primary', 'model/demo-fox'])).toMatchObject({ code: 64 });
  });
});

describe('svcctl model list and show', () => {
  test('leaves out what this version cannot run, and says so', async () => {
    const { out, err } = await run(['model', 'list']);
    expect(out).toMatch(
      /^ID +KIND +PRESENT +SIZE +MEMORY +CONTEXT +CAN +LICENSE +NOTE\ndemo-fox .*\nqwen-coder +coder +no +4\.7 GiB +5\.6 GiB +32768 +tools, vision +mit *\n$/,
    );
    expect(err).toBe('Not listed: 1 that this version cannot run; use --all to list them\n');
    const all = await run(['model', 'list', '--all']);
    expect(all).toMatchObject({ err: '', out: expect.stringContaining('it needs the provider "image"') });
  });

  test.each([
    [['--kind', 'coder'], 'model/qwen-coder\n'],
    [['--present'], 'model/demo-fox\n'],
    [['--kind', 'image', '--all'], 'model/sdxl-turbo\n'],
  ])('lists with %j only %j', async (options, out) => {
    expect(await run(['model', 'list', '-o', 'name', ...options])).toMatchObject({ code: 0, out, err: '' });
  });

  test('says when there is nothing of a kind, and refuses one that does not exist', async () => {
    expect(await run(['model', 'list', '--kind', 'rerank'])).toEqual({ code: 0, out: '', err: 'No models found\n' });
    expect(await run(['model', 'list', '--kind', 'chart'])).toMatchObject({
      code: 64,
      err: expect.stringContaining('chat, coder, vision'),
    });
  });

  test('shows the files of one with their hashes, what it needs, and that nobody has checked it', async () => {
    const { out } = await run(['model', 'show', 'qwen-coder']);
    for (const line of [
      'qwen-coder',
      '  Kind        coder',
      '  Present     no; "svcctl model pull qwen-coder" downloads 4.7 GiB',
      '  Context     32768 tokens',
      '  Needs       at least 5.6 GiB of memory',
      '  Licence     mit, https://example.org/licence',
      '    catalogue/m/0/m.gguf (not downloaded, 4.7 GiB)',
      `      sha256 ${'a'.repeat(64)}`,
      '      https://example.org/m.gguf',
      '    https://example.org',
    ])
      expect(out.split('\n')).toContain(line);
    expect(out).toContain('Checked     no: the catalogue was published without downloading it.');
    expect(JSON.parse((await run(['model', 'show', 'qwen-coder', '-o', 'json'])).out)).toMatchObject({ id: 'qwen-coder', verified: false });
    expect((await run(['model', 'show', 'sdxl-turbo'])).out).toContain('Not usable  The model "sdxl-turbo" cannot be used');
  });

  test('answers an unknown name with the one that was meant', async () => {
    const answer = await run(['model', 'show', 'demo-fix']);
    expect(answer).toMatchObject({ code: 1, err: expect.stringContaining('There is no model "demo-fix"; did you mean "demo-fox"?') });
    expect(await run(['model', 'show', '../etc/passwd'])).toMatchObject({ code: 64 });
  });
});

describe('svcctl slot, wait, explain, timeline', () => {
  test('load --model --wait ends when the new model answers, and prints each state once', async () => {
    const { code, out, err } = await run(['slot', 'load', 'primary', '--model', 'b', '--wait']);
    expect({ code, out }).toEqual({ code: 0, out: 'slot/primary loading\nslot/primary ready\n' });
    expect(err.split('\n')).toContain('primary: warming (The model is loading)');
    expect(world.board.current().slots.get(primary)).toMatchObject({ status: { state: 'ready', model: 'b' } });
  });

  test('load refuses a model that nothing provides, without --force', async () => {
    const before = world.slots.texts.get(primary);
    const { code, err } = await run(['slot', 'load', 'primary', '--model', UNKNOWN_MODEL]);
    expect([code, world.slots.texts.get(primary)]).toEqual([1, before]);
    expect(err).toMatch(/There is no model "demo-fix"; did you mean "demo-fox"\? \(model\.not_found\)\n.*--force/);
    expect((await run(['slot', 'load', 'primary', '--model', UNKNOWN_MODEL, '--force'])).code).toBe(0);
    expect(world.slots.texts.get(primary)).toContain(UNKNOWN_MODEL);
    await run(['slot', 'load', 'primary', '--model', 'b', '--wait']);
  });

  test('unload --wait ends when the slot is offline; restart --wait when it is ready again', async () => {
    expect(await run(['slot', 'unload', 'primary', '--wait'])).toMatchObject({
      code: 0,
      out: 'slot/primary unloading\nslot/primary offline\n',
    });
    expect(world.board.current().slots.get(primary)?.status.state).toBe('offline');
    await run(['slot', 'load', 'primary']);
    const before = world.board.current().slots.get(primary)?.generation ?? 0;
    expect(await run(['slot', 'restart', 'primary', '--wait'])).toMatchObject({ code: 0 });
    expect(world.board.current().slots.get(primary)).toMatchObject({ status: { state: 'ready' }, generation: before + 1 });
  });

  test('create, wait and delete', async () => {
    const made = await run(['slot', 'create', 'mine', '--model', 'm', '--provider', 'gguf', '--context-length', '4096', '--wait']);
    expect(made).toMatchObject({ code: 0, out: 'slot/mine created\nslot/mine ready\n' });
    expect(await run(['slot', 'create', 'mine', '--model', 'm', '--provider', 'gguf'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^error: Slot "mine" already exists\nhint: .*svcctl slot load mine/),
    });
    expect(await run(['wait', 'slot/mine', '--for', 'state=ready'])).toMatchObject({ code: 0, out: 'slot/mine: state=ready\n' });
    expect(await run(['slot', 'delete', 'mine', '--wait'])).toMatchObject({ code: 0, out: 'slot/mine deleted\n' });
    expect(world.slots.texts.has(SlotName.parse('mine'))).toBe(false);
  });

  test('create still accepts a context length in --context, with a warning', async () => {
    const made = await run(['slot', 'create', 'mine', '--model', 'm', '--provider', 'gguf', '--context', '4096']);
    expect(made).toEqual({ code: 0, out: 'slot/mine created\n', err: '--context now names a cluster; use --context-length 4096\n' });
    expect(world.slots.texts.get(SlotName.parse('mine'))).toContain('context = 4096');
    await run(['slot', 'delete', 'mine', '--wait']);
  });

  test('wait exits with 3 after its timeout, and prints the state of the slot', async () => {
    const { code, err } = await run(['wait', 'slot/primary', '--for', 'state=pulling', '--timeout', '200ms']);
    expect(code).toBe(3);
    expect(err).toContain('error: Timed out: primary: ready');
    expect(err).toContain('hint: See why with "svcctl explain primary"');
  });

  test('logs are printed unchanged, and a missing workload is explained', async () => {
    world.logs.set('primary', ['one', 'two']);
    expect(await run(['slot', 'logs', 'primary', '--tail', '1'])).toEqual({ code: 0, out: 'two\n', err: '' });
    expect(await run(['logs', 'primary', '--tail', '1'])).toEqual({ code: 0, out: 'two\n', err: '' });
    world.logs.clear();
    expect(await run(['slot', 'logs', 'primary'])).toMatchObject({
      code: 0,
      out: '',
      err: 'Slot "primary" has no workload and no logs; see why with "svcctl explain primary"\n',
    });
  });

  test('fit prints the answer in words, and what else the repository of the model offers', async () => {
    expect(await run(['fit', 'hf:o/r', '--context', '4096'])).toMatchObject({ code: 0, out: '"hf:o/r" fits\n' });
    expect(JSON.parse((await run(['fit', 'a', '-o', 'json'])).out)).toMatchObject({
      model: 'a',
      context: null,
      fits: true,
      needed_bytes: 5,
    });
    expect((await run(['fit', 'none'])).code).toBe(1);
    expect(await run(['fit', 'a', '--context', 'kind'])).toMatchObject({ code: 64 });
  });

  test('explain and timeline print the answers of the service', async () => {
    expect((await run(['explain', 'primary'])).out).toBe('slot primary: ready\n  because the model is "b"\n');
    expect((await run(['explain', 'slot/primary'])).out).toBe('slot primary: ready\n  because the model is "b"\n');
    const { out } = await run(['timeline', 'primary', '--limit', '2']);
    expect(out).toMatch(
      /^WHEN +KIND +WHAT +WHY\n20\S+Z +state +From "\w+" to "warming" +loads the model\n20\S+Z +state +From "warming" to "ready" /,
    );
  });
});

describe('svcctl plan, diff, apply', () => {
  const resource = (name: string, model: string) =>
    `apiVersion: inference.svc.dev/v1alpha1\nkind: SlotSpec\nmetadata: { name: ${name} }\nspec: { provider: gguf, model: { default: ${model} }, lifecycle: { idleTimeout: 15m } }\n`;

  test('plan and diff exit with 2 if something would change, and with 0 after apply', async () => {
    const input = `${resource('one', 'x')}---\n${resource('two', 'w')}`;
    const plan = await run(['plan', '-f', '-'], { input });
    expect(plan).toEqual({ code: 2, out: 'apply "one"\napply "two"\n', err: '' });
    const diff = await run(['diff', '-f', '-'], { input: resource('one', 'x') });
    expect(diff.code).toBe(2);
    expect(diff.out).toBe('slot/one (new)\n+ lifecycle.idle_timeout = "15m"\n+ model.default = "x"\n+ provider = "gguf"\n');
    const dry = await run(['apply', '-f', '-', '--dry-run'], { input });
    expect(dry).toEqual({ code: 0, out: 'slot/one created (dry run)\nslot/two created (dry run)\n', err: '' });
    expect(world.slots.texts.has(SlotName.parse('one'))).toBe(false);
    expect((await run(['apply', '-f', '-'], { input })).out).toBe('slot/one created\nslot/two created\n');
    expect((await run(['apply', '-f', '-'], { input })).out).toBe('slot/one unchanged\nslot/two unchanged\n');
    expect(await run(['diff', '-f', '-'], { input })).toEqual({ code: 0, out: '', err: '' });
    expect(await run(['plan', '-f', '-'], { input })).toMatchObject({ code: 0 });
    const changed = await run(['diff', '-f', '-'], { input: resource('one', 'z') });
    expect(changed.out).toBe('slot/one\n- model.default = "x"\n+ model.default = "z"\n');
  });

  test('plan and diff exit with 1 if a slot could not be loaded, and diff says so first', async () => {
    const input = resource('one', UNKNOWN_MODEL);
    expect(await run(['plan', '-f', '-'], { input })).toMatchObject({ code: 1, out: 'apply "one"\n' });
    const diff = await run(['diff', '-f', '-'], { input });
    const because = `Slot "one" cannot be loaded: There is no model "${UNKNOWN_MODEL}" [ModelMissing]`;
    expect(diff).toEqual({ code: 1, out: `${because}\nslot/one\n- model.default = "x"\n+ model.default = "${UNKNOWN_MODEL}"\n`, err: '' });
  });

  test('apply --prune deletes other slots, and -o json is stable', async () => {
    const { code, out } = await run(['apply', '-f', '-', '--prune', '-o', 'json'], { input: resource('one', 'x') });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      dry_run: false,
      slots: [
        { name: 'one', result: 'unchanged' },
        { name: 'primary', result: 'deleted' },
        { name: 'two', result: 'deleted' },
      ],
    });
    expect([...world.slots.texts.keys()]).toEqual(['one']);
    expect(await run(['plan', '-o', 'yaml'])).toMatchObject({ code: 0, out: expect.stringContaining('changes: []\n') });
  });
});
