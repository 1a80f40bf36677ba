/** What a plan makes of the flags of a program: nothing is started or stopped for arguments that it would refuse. */
import { describe, expect, test } from '@jest/globals';
import type { ProgramHelp, ProgramOptions } from '../../../src/providers/provider.ts';
import { factsOf, planOf, PRIMARY, type Scene } from './plan-fixture.ts';

const OPTIONS: ProgramOptions = { flags: { '--new': { words: 0, about: '' } }, removed: {} };
const help: ProgramHelp = {
  arguments: ['--help'],
  parse: () => OPTIONS,
  objection: (args, { flags }) => {
    const unknown = args.find((arg) => flags[arg] === undefined);
    return unknown === undefined ? undefined : `No "${unknown}"; use "--new"`;
  },
  byBuild: new Set(['--either', '--or']),
};
const withArgs = (args: readonly string[], options?: ProgramOptions | 'asking'): Scene => ({
  program: { help, ...(options === undefined ? {} : { options }) },
  slot: { model: { default: 'a.gguf', args: [...args] } },
});

const findings = (scene: Scene) => {
  const { made, actions } = planOf(scene);
  return { actions, reasons: made.decisions.get(PRIMARY)?.findings.map(({ reason }) => reason), decision: made.decisions.get(PRIMARY) };
};

describe('arguments that the program would refuse', () => {
  const refused = withArgs(['--old'], OPTIONS);

  test('stall the slot, with the fix, and nothing is started', () => {
    const { actions, decision } = findings(refused);
    expect(actions).toEqual([]);
    expect(decision?.findings).toEqual([{ kind: 'stalled', reason: 'ArgumentsRefused', message: 'No "--old"; use "--new"' }]);
  });

  test.each(['auto', 'drain', 'blue-green'] as const)('leave the old workload serving, whatever the swap is (%s)', (swap) => {
    const { actions, decision } = findings({
      ...refused,
      slot: { ...refused.slot, lifecycle: { swap } },
      workloads: [{ id: 'w1', revision: 'other' }],
    });
    expect([actions.filter((action) => /^(?:stop|apply)/.test(action)), decision?.serving, decision?.draining]).toEqual([[], 'w1', []]);
  });

  test('are told of a server that runs with them, which goes on', () => {
    const { decision, reasons } = findings({ ...refused, workloads: [{ id: 'w1' }] });
    expect([decision?.serving, reasons]).toEqual(['w1', ['ArgumentsRefused']]);
  });
});

describe('a program that is being asked', () => {
  const asking = withArgs(['--old'], 'asking');

  test('is waited for, by a first start and by a swap, and the old workload serves', () => {
    expect(findings(asking)).toMatchObject({ actions: [], reasons: ['ProgramNotAsked'] });
    const { actions, decision } = findings({ ...asking, workloads: [{ id: 'w1', revision: 'other' }] });
    expect([actions.filter((action) => /^(?:stop|apply)/.test(action)), decision?.serving]).toEqual([[], 'w1']);
  });

  test('is not waited for by what runs already', () => {
    expect(findings({ ...asking, workloads: [{ id: 'w1' }] }).reasons).toEqual([]);
  });
});

test.each<[string, Scene]>([
  ['the program has all flags', withArgs(['--new'], OPTIONS)],
  ['its flags are not known', withArgs(['--old'])],
])('the workload is started where %s', (_why, scene) => {
  expect(findings(scene).actions).toEqual([expect.stringMatching(/^apply/)]);
});

describe('an update of the program', () => {
  test('changes no revision: nothing is restarted for it', () => {
    const { desired, slot, template, observed } = factsOf(withArgs(['--new']));
    const model = [...observed.models.values()][0];
    if (model?.kind !== 'present') throw new Error('It must be there');
    const after = desired.templateOf(slot, model.facts, template.image, { options: { ...OPTIONS, flags: {} } });
    expect(after).toMatchObject({ revision: template.revision, refusedArguments: 'No "--new"; use "--new"' });
  });

  test('is no drift of a server that was started with what the earlier build had', () => {
    const driftOf = (argv: readonly string[]): readonly string[] => {
      const { desired, observed, slot, template } = factsOf({ ...withArgs([]), workloads: [{ id: 'w1', altered: { argv: [...argv] } }] });
      const [workload] = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
      if (workload === undefined) throw new Error('It must be there');
      return desired.compare(slot, { ...template, argv: () => ['fake', '--either', '1'] }, undefined, workload).drift;
    };
    expect(driftOf(['fake', '--or', '1'])).toEqual([]);
    expect(driftOf(['fake', '1'])).toEqual([]);
    expect(driftOf(['fake', '--or', '2'])).toEqual([expect.stringContaining('argv differs')]);
  });
});
