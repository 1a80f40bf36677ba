import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { SlotName } from '../../../src/schema/words/names.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { RICH_OVERLAY } from '../rich-overlay.ts';

const primary = SlotName.parse('primary');

function problems(pod: unknown, style: 'snake_case' | 'camelCase' = 'camelCase'): readonly string[] {
  const parsed = parseSlot(primary, { model: { default: 'a.gguf' }, pod }, style);
  return parsed.ok ? [] : parsed.problems.map((problem) => formatProblem(problem, style));
}

describe('the overlay of a slot’s pods', () => {
  test('accepts what pod templates of real installations contain, and keeps it as it is', () => {
    const parsed = parseSlot(primary, { model: { default: 'a.gguf' }, pod: RICH_OVERLAY });
    expect(parsed.ok ? parsed.spec.cluster.pod : parsed.problems).toEqual(RICH_OVERLAY);
  });

  test.each([
    [{ containers: [] }, /^pod\.containers: Key "containers" is not allowed: the controller decides which containers a pod has/],
    [{ hostNetwork: true }, /^pod\.hostNetwork: Key "hostNetwork" is not allowed: the pods of a slot have a network/],
    [{ hostPID: true }, /^pod\.hostPID: Key "hostPID" is not allowed: /],
    [{ nodeSelector: {} }, /^pod\.nodeSelector: Key "nodeSelector" is not allowed: write it at the top of the slot/],
    [{ terminationGracePeriodSeconds: 5 }, /it follows from "lifecycle\.drainTimeout"$/],
    [{ spec: {} }, /^pod\.spec: Key "spec" is not allowed: write its keys directly under "pod"$/],
    [{ env: [] }, /^pod\.env: Key "env" is not allowed: write it under "pod\.server" or "pod\.model"$/],
    [
      { server: { command: ['sh'] } },
      /^pod\.server\.command: Key "command" is not allowed: the provider decides how the server is started/,
    ],
    [{ server: { args: [] } }, /^pod\.server\.args: .*"model\.args" appends arguments$/],
    [{ server: { image: 'x' } }, /^pod\.server\.image: .*toolbox manifest/],
    [{ server: { ports: [] } }, /^pod\.server\.ports: .*the provider decides the port/],
    [{ server: { livenessProbe: {} } }, /^pod\.server\.livenessProbe: .*"lifecycle\.startTimeout"/],
    [{ model: { lifecycle: {} } }, /^pod\.model\.lifecycle: Key "lifecycle" is not allowed: the controller needs the hooks/],
    [{ priorityClass: 'x' }, /^pod\.priorityClass: Unknown key "priorityClass"; did you mean "priorityClassName"\?$/],
    [{ labels: { team: 'two words' } }, /^pod\.labels\.team: Write a label of letters/],
    [{ server: { resources: { limits: { cpu: '0,5' } } } }, /^pod\.server\.resources\.limits\.cpu: Write a quantity such as 2, "500m"/],
    [{ server: { resources: { limits: { memory: '1000000000000000000000000000000' } } } }, /with at most 15 digits/],
    [
      {
        volumes: [
          { name: 'a', emptyDir: {} },
          { name: 'a', emptyDir: {} },
        ],
      },
      /^pod\.volumes\.1: An earlier entry has the same "name": remove or change this one/,
    ],
  ])('refuses %j', (pod, message) => {
    expect(problems(pod)).toEqual([expect.stringMatching(message)]);
  });

  test('names keys as files write them', () => {
    expect(problems({ hostNetwork: true }, 'snake_case')).toEqual([
      expect.stringMatching(/^pod\.host_network: Key "host_network" is not allowed: /),
    ]);
    const unmounted = { volumes: [], server: { volumeMounts: [{ name: 'b', mountPath: '/b' }] } };
    expect(problems(unmounted, 'snake_case')).toEqual([
      expect.stringMatching(/^pod\.server: A volume of "pod\.server\.volume_mounts" is not in "pod\.volumes"/),
    ]);
  });

  test('never quotes the value of a variable', () => {
    expect(problems({ server: { env: [{ name: 'KEY', value: 5 }] } })).toEqual([expect.not.stringContaining('5')]);
  });
});

test('every example of docs/cluster/pods.md with an overlay is valid', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../docs/cluster/pods.md'), 'utf8');
  const examples = [...page.matchAll(/```yaml\n(spec:\n[^]*?)```/g)]
    .map(([, text = '']) => parse(text).spec)
    .filter((spec) => 'pod' in spec);
  expect(examples).toHaveLength(3);
  for (const spec of examples) expect(parseSlot(primary, { model: { default: 'a.gguf' }, ...spec })).toMatchObject({ ok: true });
});
