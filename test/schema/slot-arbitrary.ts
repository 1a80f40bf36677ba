/** Generates random valid slot documents with keys in camelCase. */
import fc from 'fast-check';
import { podOverlays } from './pod-arbitrary.ts';
import { PROVIDER_KIND_NAMES, PROVIDER_KINDS } from '../../src/schema/slot/provider-kinds.ts';

const duration = fc.tuple(fc.nat({ max: 20 }), fc.constantFrom('s', 'm', 'h')).map(([count, unit]) => `${count + 1}${unit}`);
const size = fc.tuple(fc.nat({ max: 998 }), fc.constantFrom('Mi', 'Gi', 'G')).map(([count, unit]) => `${count + 1}${unit}`);
const plain = fc.string({ maxLength: 20, unit: 'grapheme' }).filter((text) => !/[\0\r\n]/.test(text));
const label = fc.stringMatching(/^[a-z]{1,8}(\.[a-z]{1,5}\/[a-z_]{1,8})?$/);
const some = { requiredKeys: [] };
const anyTaint = fc.record({ operator: fc.constant('Exists') });
const oneTaint = fc.record({ key: label, operator: fc.constantFrom('Exists', 'Equal') }, { requiredKeys: ['key'] });
const forSomeTime = fc.record({ key: label, effect: fc.constant('NoExecute'), tolerationSeconds: fc.nat() });

const kind = fc
  .constantFrom(...PROVIDER_KIND_NAMES)
  .chain((provider) =>
    fc.record(
      { provider: fc.constant(provider), backend: fc.constantFrom(...PROVIDER_KINDS[provider].backends) },
      { requiredKeys: ['provider'] },
    ),
  );
const rest = fc.record(
  {
    enabled: fc.boolean(),
    priority: fc.integer({ min: -1000, max: 1000 }),
    load: fc.constantFrom('always', 'on-demand'),
    restartedAt: fc.constant('2026-01-31T12:00:00Z'),
    model: fc.record(
      {
        default: fc.constantFrom('a.gguf', 'dir/b.gguf', 'sdxl-turbo', '..hidden/x'),
        aliases: fc.array(fc.string({ minLength: 1, maxLength: 9, unit: 'grapheme' }), { maxLength: 3 }),
        context: fc.integer({ min: 64, max: 16_777_216 }),
        args: fc.array(plain, { maxLength: 3 }),
      },
      { requiredKeys: ['default'] },
    ),
    lifecycle: fc.oneof(
      fc.record(
        {
          idleTimeout: fc.oneof(duration, fc.constant('never')),
          startTimeout: duration,
          drainTimeout: duration,
          swap: fc.constantFrom('auto', 'drain'),
        },
        some,
      ),
      fc.record({
        idleTimeout: duration,
        warm: fc.array(fc.constantFrom('08:30-18:00', 'Mon-Fri 22:00-02:00', 'Sat,Sun 00:00-24:00'), { maxLength: 2 }),
        prewarm: fc.constantFrom('never', 'learned'),
      }),
    ),
    resources: fc.oneof(
      fc.record({ memory: size, gpus: fc.nat({ max: 64 }) }, some),
      fc.record({ deviceAccess: fc.constant('hostDevices') }),
      fc.record({ deviceAccess: fc.constant('plugin'), gpuResource: fc.constantFrom('nvidia.com/mig-1g.10gb', 'amd.com/gpu') }, some),
    ),
    env: fc.dictionary(
      fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,9}$/).filter((name) => name !== '__proto__' && name !== 'constructor'),
      plain,
      { maxKeys: 4, noNullPrototype: true },
    ),
    replicas: fc.nat({ max: 9 }),
    autoscale: fc
      .record({ min: fc.integer({ min: 1, max: 4 }), max: fc.integer({ min: 4, max: 9 }), inFlight: fc.integer({ min: 1, max: 9 }) })
      .map(({ min, max, inFlight }) => ({ min, max, target: { inFlight } })),
    nodeSelector: fc
      .dictionary(label, plain, { maxKeys: 3, noNullPrototype: true })
      .filter((labels) => !('constructor' in labels && Object.hasOwn(labels, 'constructor'))),
    tolerations: fc.array(fc.oneof(anyTaint, oneTaint, forSomeTime), { maxLength: 2 }),
    storage: fc.oneof(
      fc.record({ size, className: label }, some),
      fc.record({ size, accessModes: fc.constantFrom(['ReadWriteMany'], ['ReadOnlyMany', 'ReadWriteOnce']) }),
      fc.record({ hostPath: fc.constant('/models') }, some),
      fc.record({ claimName: label }),
    ),
    serviceAccountName: label,
    pod: podOverlays,
  },
  { requiredKeys: ['model'] },
);

export const slotDocuments = fc
  .tuple(kind, rest)
  .map(([provider, others]): Readonly<Record<string, unknown>> => ({ ...provider, ...others, ...oneMemory(others) }));

/** The limit of memory is in one of two places. */
function oneMemory({ resources, pod }: { readonly resources?: object; readonly pod?: Overlay }): object {
  if (resources === undefined || pod?.server?.resources?.limits?.['memory'] === undefined) return {};
  return { resources: Object.fromEntries(Object.entries(resources).filter(([key]) => key !== 'memory')) };
}

interface Overlay {
  readonly server?: { readonly resources?: { readonly limits?: Readonly<Record<string, unknown>> } };
}
