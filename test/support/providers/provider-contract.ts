/** The contract of every provider. Each one in the registry runs this suite, and so does the toy provider of the tests. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { INFERENCE_PATHS } from '../../../src/gateway/route/decide/inference-paths.ts';
import type { Provider, Sized } from '../../../src/providers/provider.ts';
import { MODEL_ABILITIES, BACKENDS, CAPABILITIES } from '../../../src/schema/slot/provider-kinds.ts';
import type { SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { RECORDED_MACHINES, recordedHardware } from '../hardware/recorded-machines.ts';
import { filesOf, type SampleModel } from './files-in-memory.ts';
import { describeFormatContract } from './format-contract.ts';
import { describeMemoryContract } from './memory-contract.ts';
import { describeHealthContract, type SoundAnswer } from './health-contract.ts';
import { describeTranslationContract } from './translation-contract.ts';
import { contextOf, factsOf, frozen, oddModels, specOf, specs } from './odd-models.ts';

export interface ProviderSamples {
  /** Ordinary models of the provider, complete, by what they are. */
  readonly models: Readonly<Record<string, SampleModel>>;
  /** What its program prints, if it brings models itself. */
  readonly listing?: string;
  /** Models that the provider does not read. */
  readonly unread?: readonly Sized[];
  /** What slots must set. */
  readonly document?: Partial<SlotDocument>;
  /** How much of these models may be read. */
  readonly maxReadBytes: number;
  readonly sound: SoundAnswer;
}

/** Small models, so that few runs find what there is to find. */
const RUNS = { numRuns: 150 };
const NAME = SlotName.parse('mine');
const ID = ModelId.parse('m');
const A_SECRET = 'hf_this-must-not-be-passed-on';

export function describeProviderContract(provider: Provider, samples: ProviderSamples): void {
  const { kind } = provider;
  const facts = factsOf(provider);
  const { serves: served, backends } = facts;
  const ordinary: Sized[] = [];
  const read = async (sample: SampleModel) => provider.models.read({ id: ID, entry: sample.entry }, filesOf(sample));

  describe(`the provider "${kind}" keeps the contract of providers:`, () => {
    beforeAll(async () => {
      for (const sample of Object.values(samples.models)) {
        const reading = await read(sample);
        if (reading.kind === 'model')
          ordinary.push({ id: ID, hostPath: `/models/${sample.entry.name}`, provider: provider.models.kind, ...reading });
      }
      ordinary.push(...(samples.unread ?? []));
      for (const own of provider.ownModels?.parse(samples.listing ?? '') ?? []) {
        ordinary.push({ id: own.id, hostPath: own.id, provider: kind, sizeBytes: own.sizeBytes, contents: own.contents });
      }
    });
    /** For a slot and a model, ordinary or odd. */
    const always = (check: (spec: ReturnType<typeof specOf>, model: Sized) => void): void => {
      const models = fc.oneof(fc.constantFrom(...ordinary), oddModels(kind, ordinary));
      fc.assert(
        fc.property(specs(provider), models, (spec, model) => check(frozen(spec), frozen(model))),
        RUNS,
      );
    };

    describe('what it says of a model to users', () => {
      test('is plain data within the known terms, whatever the contents are', () => {
        always((_spec, { contents = {} }) => {
          const traits = provider.models.describe?.(contents) ?? {};
          expect(JSON.parse(JSON.stringify(traits))).toEqual(traits);
          expect(provider.models.describe?.(contents)).toEqual(provider.models.describe === undefined ? undefined : traits);
          for (const text of [traits.quantization, traits.pooling]) expect(typeof (text ?? '')).toBe('string');
          for (const count of [traits.parameters, traits.context, traits.experts?.total]) expect(count ?? 1).toBeGreaterThanOrEqual(0);
          for (const ability of traits.abilities ?? []) expect(MODEL_ABILITIES).toContain(ability);
        });
      });
    });

    describe('what it is', () => {
      test('names one program, a port that needs no privileges, and a path', () => {
        expect(provider.program).toMatch(provider.engine === undefined ? /^[A-Za-z0-9._+-]+$/ : /^[A-Za-z0-9._+/-]+$/);
        expect(provider.containerPort).toBeGreaterThan(1023);
        expect(provider.containerPort).toBeLessThan(65_536);
        expect(provider.readyPath).toMatch(/^\/[!-~]*$/);
        if (provider.accepts === undefined) expect(provider.models.kind).toBe(kind);
        for (const flag of provider.safeFlags ?? []) expect(flag).toMatch(/^--?[A-Za-z0-9]/);
      });

      test('names devices by path or by CDI name, and none for the CPU', () => {
        for (const backend of BACKENDS) {
          for (const device of provider.devices(backend)) expect(device).toMatch(/^\/dev\/[\w/.-]+$|^[\w.-]+\/[\w-]+=[\w:-]+$/);
        }
        expect(provider.devices('cpu')).toEqual([]);
      });
    });

    describe('the command and the environment of a server', () => {
      test('are the same for the same slot, and begin with the program', () => {
        always((spec, model) => {
          const slot = frozen(contextOf(spec, model));
          const [program] = provider.startCmd(slot);
          expect(program).toBe(provider.program);
          expect(provider.startCmd(slot)).toEqual(provider.startCmd(slot));
          expect(provider.buildEnv(slot)).toEqual(provider.buildEnv(slot));
        });
      });

      test('go to no shell: the model and the arguments of the slot stay as they are, each by itself, and the slot has the last word', () => {
        always((spec, model) => {
          const argv = provider.startCmd(contextOf(spec, model));
          const words = [...argv, ...Object.values(provider.buildEnv(contextOf(spec, model)))];
          // Some servers take the directory and the name in it.
          if (provider.fetchesModels === undefined && !words.includes(model.hostPath))
            expect(words).toEqual(expect.arrayContaining([dirname(model.hostPath), basename(model.hostPath)]));
          expect(argv.slice(argv.length - spec.model.args.length)).toEqual(spec.model.args);
          for (const argument of argv) expect(argument).not.toMatch(/\0/);
          expect(argv.slice(0, 2)).not.toEqual([expect.stringMatching(/^(ba|da|z)?sh$/), '-c']);
        });
      });

      test('name no file outside the directory of the model, whatever its contents are said to be', () => {
        for (const model of ordinary) {
          for (const key of Object.keys(model.contents ?? {})) {
            for (const path of ['../../etc/passwd', '/etc/passwd', 'a/../../../etc/passwd']) {
              const argv = provider.startCmd(contextOf(specOf(provider), { ...model, contents: { ...model.contents, [key]: path } }));
              expect(argv.filter((argument) => argument.includes('etc/passwd'))).toEqual([]);
            }
          }
        }
      });

      test('depend on the port only where it stands', () => {
        always((spec, model) => {
          const [one, other] = [0, 54_321].map((port) => provider.startCmd(contextOf(spec, model, port)));
          const replaced = (other ?? []).map((argument) => argument.replaceAll('54321', '0'));
          expect(replaced).toEqual(one);
          expect(other?.join(' ')).toContain('54321');
          expect(provider.buildEnv(contextOf(spec, model, 0))).toEqual(
            Object.fromEntries(
              Object.entries(provider.buildEnv(contextOf(spec, model, 54_321))).map(([key, value]) => [
                key,
                value.replaceAll('54321', '0'),
              ]),
            ),
          );
        });
      });

      test('have no secrets, nor anything else of the environment of the service', () => {
        process.env['HF_TOKEN'] = A_SECRET;
        try {
          always((spec, model) => {
            const slot = contextOf(spec, model);
            const env = provider.buildEnv(slot);
            for (const [name, value] of Object.entries(env)) {
              expect(name).toMatch(/^[A-Za-z_][A-Za-z0-9_]*$/);
              expect(name).not.toMatch(/TOKEN|SECRET|PASSWORD|API_KEY/i);
              expect(typeof value).toBe('string');
            }
            expect(JSON.stringify([env, provider.startCmd(slot)])).not.toContain(A_SECRET);
          });
        } finally {
          delete process.env['HF_TOKEN'];
        }
      });
    });

    describeMemoryContract(provider, { ordinary, always });

    describe('what it serves', () => {
      test('is part of what its kind serves, for every model', () => {
        always((spec, model) => {
          const capabilities = provider.capabilities(NAME, spec, model);
          for (const capability of capabilities) expect(served).toContain(capability);
          expect(new Set(capabilities).size).toBe(capabilities.length);
        });
        for (const model of ordinary) expect(provider.capabilities(NAME, specOf(provider), model)).not.toEqual([]);
      });

      test('is refused in a sentence where it must not be served, and never an ordinary model', () => {
        always((spec, model) => {
          const objection = provider.objection?.(NAME, spec, model);
          if (objection !== undefined) expect(objection).toMatch(/^[A-Z].{20,}[^.]$/s);
          expect(provider.objection?.(NAME, spec, model)).toBe(objection);
        });
        for (const model of ordinary) expect(provider.objection?.(NAME, specOf(provider, samples.document), model)).toBeUndefined();
      });

      test('decides on every path, and refuses in a sentence what the model cannot do', () => {
        const paths = [
          ...INFERENCE_PATHS.map(({ path, canonical }) => canonical ?? path),
          '/',
          '',
          'constructor',
          '/v1/../etc',
          '/v1/unknown',
        ];
        for (const path of paths) {
          for (const capability of CAPABILITIES) {
            for (const capabilities of [[], [capability], served]) {
              const plan = provider.infer(frozen({ method: 'POST', path, capability }), capabilities);
              if (plan.kind === 'refuse') expect(plan.message).toMatch(/^[A-Z].{20,}[^.]$/s);
              if (plan.kind === 'forward') expect(plan.path).toMatch(/^\/[!-~]*$/);
              if (!capabilities.includes(capability)) expect(plan.kind).toBe('refuse');
            }
          }
        }
      });
    });

    describe('the backends of a machine', () => {
      test('are those of its kind, each once, and a reason why not is a clause', () => {
        for (const name of RECORDED_MACHINES) {
          const hardware = frozen(recordedHardware(name));
          const verdicts = provider.rankBackends(hardware);
          expect(verdicts.map(({ backend }) => backend).toSorted()).toEqual(backends.toSorted());
          for (const { missing } of verdicts) if (missing !== undefined) expect(missing).toMatch(/^.{8,}[^.]$/);
          expect(provider.rankBackends(hardware)).toEqual(verdicts);
        }
      });

      test('are all possible where nothing is known, and its default one comes first', () => {
        const verdicts = provider.rankBackends(undefined);
        expect(verdicts[0]?.backend).toBe(facts.defaultBackend);
        expect(verdicts.filter(({ missing }) => missing !== undefined)).toEqual([]);
      });

      test('follow what its program reports', () => {
        const programs = { [kind]: { name: '"/usr/bin/x"', backends: [] } };
        const verdicts = provider.rankBackends({ ...recordedHardware('w7900'), programs });
        for (const { backend, missing } of verdicts) expect(missing === undefined).toBe(backend === 'cpu');
      });
    });

    const { ownModels } = provider;
    if (ownModels !== undefined) {
      test('lists the models that its program brings, and no others, whatever that prints', () => {
        const listed = ownModels.parse(samples.listing ?? '') ?? [];
        expect(listed).not.toEqual([]);
        for (const { id, contents, missing } of listed) {
          expect(ModelId.safeParse(id).success).toBe(true);
          expect(JSON.parse(JSON.stringify(contents))).toEqual(contents);
          if (missing !== undefined) expect(missing).toMatch(/^[A-Z].{20,}[^.]$/s);
        }
        for (const output of ['', 'null', '[]', '{', '{"models":1}', '<html>']) expect(ownModels.parse(output)).toBeUndefined();
        fc.assert(
          fc.property(fc.jsonValue(), (value) => {
            expect(ownModels.parse(JSON.stringify({ models: [value, { name: value }] }))).toBeDefined();
          }),
          RUNS,
        );
      });
    }
    describeFormatContract(provider, samples.models, samples.maxReadBytes);
    describeHealthContract(provider, () => ordinary, samples.sound);
    describeTranslationContract(provider, () => ordinary);

    test('says without installing anything how its program is found on a machine that has none', async () => {
      const stateDir = await mkdtemp(join(tmpdir(), 'svc-contract-'));
      try {
        const program = provider.openProgram({ env: { PATH: stateDir }, stateDir, onProgress: () => undefined });
        const found = await program.describe();
        if (found.ok) expect(found.value.name).not.toBe('');
        else expect(found.failure).toMatchObject({ reason: 'ProgramMissing', message: expect.stringMatching(/^[A-Z].{20,}[^.]$/) });
        const report = await program.reportBackends?.('');
        for (const backend of report?.backends ?? []) expect(backends).toContain(backend);
      } finally {
        await rm(stateDir, { recursive: true });
      }
    });
  });
}
