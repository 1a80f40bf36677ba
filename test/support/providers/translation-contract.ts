/** The part of the contract of providers about translations: each comes to an end whatever the client sends and the server answers, and asks for nothing that cannot be sent. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { INFERENCE_PATHS } from '../../../src/gateway/route/decide/inference-paths.ts';
import type { ModelFacts, Provider } from '../../../src/providers/provider.ts';
import type {
  StepResult,
  TranslatableBody,
  TranslatableRequest,
  Translate,
  TranslationEnd,
  TranslationStep,
  UpstreamRequest,
} from '../../../src/providers/translation.ts';
import { ERROR_CODES } from '../../../src/schema/words/error-codes.ts';
import { factsOf, specOf } from './odd-models.ts';
import type { Capability } from '../../../src/schema/slot/provider-kinds.ts';

/** A server that never has an end to say would keep a translation asking; the gateway ends it after its time limit. */
const MAX_STEPS = 2000;

const bodies: fc.Arbitrary<TranslatableBody> = fc.oneof(
  fc.jsonValue().map((value) => ({ kind: 'json', value, text: JSON.stringify(value) }) as const),
  fc
    .constantFrom<unknown>({ input: 'x' }, { prompt: 'x', n: 1e9 }, { input: [] }, { model: null, messages: 'no' }, {}, [])
    .map((value) => ({ kind: 'json', value, text: JSON.stringify(value) }) as const),
  fc
    .array(fc.record({ name: fc.string(), value: fc.string() }), { maxLength: 3 })
    .map((fields) => ({ kind: 'form', fields, files: [] }) as const),
  fc.constant<TranslatableBody>({
    kind: 'form',
    fields: [],
    files: [{ name: 'file', fileName: '../../x', contentType: undefined, bytes: 10, from: 0 }],
  }),
);

const answers = fc.record({
  status: fc.constantFrom(200, 200, 200, 204, 400, 404, 500, 503),
  body: fc.oneof(fc.constantFrom('', '{}', '[]', 'null', '<html>', '0.5 1', '{"prompt_id":"a"}'), fc.string()),
});

interface Ran {
  readonly steps: readonly TranslationStep[];
  readonly end: TranslationEnd | Error | 'endless';
}

function runWith(run: Translate, request: TranslatableRequest, { status, body }: { readonly status: number; readonly body: string }): Ran {
  const bytes = new TextEncoder().encode(body);
  const steps: TranslationStep[] = [];
  const resultOf = (step: TranslationStep): StepResult => {
    if (step.kind === 'ask') return { kind: 'answer', answer: { status, headers: new Map(), body: bytes } };
    if (step.kind === 'open') return { kind: 'head', head: { status, headers: new Map() } };
    if (step.kind === 'next') return { kind: 'bytes', bytes: steps.length % 2 === 0 ? bytes : undefined };
    if (step.kind === 'keep') {
      const kept =
        status === 200 ? ({ ok: true, url: '/api/images/cache/a.png' } as const) : ({ ok: false, problem: 'Look at the log' } as const);
      return { kind: 'kept', kept };
    }
    if (step.kind === 'read') return { kind: 'bytes', bytes: new Uint8Array(step.bytes) };
    return { kind: 'done' };
  };
  try {
    const generator = run(request);
    let next = generator.next({ kind: 'done' });
    while (next.done !== true) {
      steps.push(next.value);
      if (steps.length > MAX_STEPS) return { steps, end: 'endless' };
      next = generator.next(resultOf(next.value));
    }
    return { steps, end: next.value };
  } catch (error) {
    return { steps, end: error instanceof Error ? error : new Error('It threw something else') };
  }
}

function requestsOf(step: TranslationStep): readonly UpstreamRequest[] {
  if (step.kind === 'ask' || step.kind === 'open' || step.kind === 'keep') return [step.request];
  return step.kind === 'on-leave' || step.kind === 'on-end' ? step.requests : [];
}

/** Every translation that the provider offers for one of its capabilities. `model`: of the slot, where it is known. */
function translationsOf(
  provider: Provider,
  model?: ModelFacts,
): readonly { readonly path: string; readonly capability: Capability; readonly run: Translate }[] {
  const { serves } = factsOf(provider);
  return INFERENCE_PATHS.flatMap(({ path, canonical = path, capability }) => {
    const plan = provider.infer({ method: 'POST', path: canonical, capability }, serves, { spec: specOf(provider), model });
    return plan.kind === 'translate' ? [{ path: canonical, capability, run: plan.run }] : [];
  });
}

/** `modelsOf`: ordinary models, once the tests run. */
export function describeTranslationContract(provider: Provider, modelsOf: () => readonly ModelFacts[]): void {
  for (const { path, capability } of translationsOf(provider)) {
    describe(`the translation of ${path}`, () => {
      const always = (check: (ran: Ran, again: Ran) => void): void => {
        const models = fc.constantFrom(undefined, ...modelsOf());
        fc.assert(
          fc.property(bodies, answers, models, (body, answer, model) => {
            const { run } = translationsOf(provider, model).find((each) => each.path === path) ?? {};
            if (run === undefined) throw new Error(`"${path}" is translated for some models only`);
            const request: TranslatableRequest = {
              path,
              capability,
              requestId: 'r1',
              receivedAt: 1_795_000_000,
              boundary: 'b'.repeat(32),
              body,
            };
            check(runWith(run, request, answer), runWith(run, request, answer));
          }),
          { numRuns: 150 },
        );
      };

      test('ends without an error, in an answer that can be sent, and in the same one each time', () => {
        always(({ end }, again) => {
          if (end instanceof Error) throw end;
          expect(again.end).toEqual(end);
          if (end === 'endless') throw new Error(`It had not ended after ${MAX_STEPS} steps`);
          if (end.kind === 'answer') expect(end.contentType).toMatch(/^[\w.+-]+\/[\w.+-]+/);
          if (end.kind === 'refuse') {
            expect(Object.keys(ERROR_CODES)).toContain(end.code);
            expect(end.message).toMatch(/^[A-Z].{8,}[^.]$/s);
          }
        });
      });

      test('asks the server only for what can be sent', () => {
        always(({ steps }) => {
          for (const { path: asked, method, headers = {} } of steps.flatMap(requestsOf)) {
            expect(asked).toMatch(/^\/[!-~]*$/);
            expect(['GET', 'POST', 'DELETE']).toContain(method);
            for (const [name, value] of Object.entries(headers)) expect(`${name}: ${value}`).toMatch(/^[\w-]+: [ -~]*$/);
          }
        });
      });
    });
  }
}
