/** Generates random valid overlays of a slot's pods with keys in camelCase. */
import fc from 'fast-check';

const some = { requiredKeys: [] };
const name = fc.stringMatching(/^[a-z]{1,8}$/).filter((text) => !['models', 'tmp', 'constructor'].includes(text));
const ownKey = fc
  .stringMatching(/^(example\.com\/)?[a-zA-Z]{1,5}([._-][a-z]{1,4})?$/)
  .filter((text) => text !== 'constructor' && text !== 'toString');
const labels = fc.dictionary(ownKey, fc.stringMatching(/^[A-Za-z0-9]{0,6}$/), { maxKeys: 3, noNullPrototype: true });
const quantity = fc.oneof(
  fc.integer({ min: 1, max: 64 }),
  fc.tuple(fc.integer({ min: 1, max: 4000 }), fc.constantFrom('', 'm', 'k', 'Mi', 'Gi', 'G')).map(([count, unit]) => `${count}${unit}`),
  fc.constantFrom('0.5', '1.5Gi', '1000m', '0.1', '1024Mi'),
);
const amounts = fc.dictionary(fc.constantFrom('cpu', 'memory', 'ephemeral-storage', 'example.com/nic_1'), quantity, {
  maxKeys: 3,
  noNullPrototype: true,
});
const selector = fc.record(
  { matchLabels: labels, matchExpressions: fc.array(fc.record({ key: ownKey, operator: fc.constant('Exists') }), { maxLength: 2 }) },
  some,
);
const mode = fc.integer({ min: 0, max: 0o777 });
const items = fc.array(fc.record({ key: name, path: name, mode }, { requiredKeys: ['key', 'path'] }), { minLength: 1, maxLength: 2 });

const source = fc.oneof(
  fc.record({
    secret: fc.record({ secretName: name, items, defaultMode: mode, optional: fc.boolean() }, { requiredKeys: ['secretName'] }),
  }),
  fc.record({ configMap: fc.record({ name, items, defaultMode: mode }, { requiredKeys: ['name'] }) }),
  fc.record({ emptyDir: fc.record({ medium: fc.constant('Memory'), sizeLimit: quantity }, some) }),
  fc.record({ persistentVolumeClaim: fc.record({ claimName: name, readOnly: fc.boolean() }, { requiredKeys: ['claimName'] }) }),
  fc.record({
    projected: fc.record({
      sources: fc.array(
        fc.oneof(fc.record({ secret: fc.record({ name, items }) }), fc.record({ serviceAccountToken: fc.record({ path: name }) })),
        {
          minLength: 1,
          maxLength: 2,
        },
      ),
    }),
  }),
  fc.record({ csi: fc.record({ driver: name, readOnly: fc.boolean(), volumeAttributes: labels }, { requiredKeys: ['driver'] }) }),
  fc.record({
    nfs: fc.record({ server: name, path: fc.constant('/exports'), readOnly: fc.boolean() }, { requiredKeys: ['server', 'path'] }),
  }),
  fc.record({ hostPath: fc.record({ path: fc.constant('/dev/shm'), type: fc.constant('Directory') }, { requiredKeys: ['path'] }) }),
);
const volumes = fc
  .uniqueArray(name, { maxLength: 3 })
  .chain((names) => fc.tuple(...names.map((each) => source.map((from) => ({ name: each, ...from })))));

const variable = fc.oneof(
  fc.record({ value: fc.string({ maxLength: 6 }) }),
  fc.record({
    valueFrom: fc.record({ secretKeyRef: fc.record({ name, key: name, optional: fc.boolean() }, { requiredKeys: ['name', 'key'] }) }),
  }),
  fc.record({ valueFrom: fc.record({ fieldRef: fc.record({ fieldPath: fc.constant('spec.nodeName') }) }) }),
  fc.record({
    valueFrom: fc.record({
      resourceFieldRef: fc.record(
        { resource: fc.constant('limits.cpu'), divisor: fc.constantFrom(1, '1m', '1000m') },
        { requiredKeys: ['resource'] },
      ),
    }),
  }),
);
const env = fc
  .uniqueArray(fc.stringMatching(/^OVERLAY_[A-Z]{1,3}$/), { maxLength: 3 })
  .chain((names) => fc.tuple(...names.map((each) => variable.map((from) => ({ name: each, ...from })))));

const ids = fc.integer({ min: 1, max: 2_000_000_000 });
const container = (mounted: readonly string[]) =>
  fc.record(
    {
      resources: fc.record({ requests: amounts, limits: amounts }, some),
      env,
      envFrom: fc.array(
        fc.oneof(
          fc.record({ secretRef: fc.record({ name }) }),
          fc.record({ prefix: fc.constant('A_'), configMapRef: fc.record({ name }) }),
        ),
        {
          maxLength: 2,
        },
      ),
      volumeMounts: fc.tuple(
        ...mounted.map((each) =>
          fc.record(
            { name: fc.constant(each), mountPath: fc.constant(`/mnt/${each}`), readOnly: fc.boolean() },
            { requiredKeys: ['name', 'mountPath'] },
          ),
        ),
      ),
      securityContext: fc.record(
        {
          runAsUser: ids,
          readOnlyRootFilesystem: fc.boolean(),
          privileged: fc.boolean(),
          capabilities: fc.record({ add: fc.constant(['SYS_NICE']) }, some),
        },
        some,
      ),
    },
    some,
  );

const expression = fc.record({
  key: ownKey,
  operator: fc.constantFrom('In', 'NotIn'),
  values: fc.array(name, { minLength: 1, maxLength: 2 }),
});
const term = fc.record({ matchExpressions: fc.array(expression, { minLength: 1, maxLength: 2 }) });
const podTerm = fc.record({ topologyKey: ownKey, labelSelector: selector }, { requiredKeys: ['topologyKey'] });
const affinity = fc.record(
  {
    nodeAffinity: fc.record(
      {
        requiredDuringSchedulingIgnoredDuringExecution: fc.record({ nodeSelectorTerms: fc.array(term, { minLength: 1, maxLength: 2 }) }),
        preferredDuringSchedulingIgnoredDuringExecution: fc.array(
          fc.record({ weight: fc.integer({ min: 1, max: 100 }), preference: term }),
          {
            maxLength: 2,
          },
        ),
      },
      some,
    ),
    podAntiAffinity: fc.record({ requiredDuringSchedulingIgnoredDuringExecution: fc.array(podTerm, { maxLength: 2 }) }, some),
  },
  some,
);
const spread = fc.uniqueArray(
  fc.record(
    {
      maxSkew: fc.integer({ min: 1, max: 3 }),
      topologyKey: ownKey,
      whenUnsatisfiable: fc.constantFrom('DoNotSchedule', 'ScheduleAnyway'),
      labelSelector: selector,
    },
    { requiredKeys: ['maxSkew', 'topologyKey', 'whenUnsatisfiable'] },
  ),
  { maxLength: 2, selector: ({ topologyKey }) => topologyKey },
);

export const podOverlays = volumes.chain((declared) =>
  fc.record(
    {
      labels,
      annotations: labels,
      imagePullSecrets: fc.uniqueArray(fc.record({ name }), { maxLength: 2, selector: (each) => each.name }),
      priorityClassName: name,
      runtimeClassName: name,
      schedulerName: name,
      affinity,
      topologySpreadConstraints: spread,
      securityContext: fc.record({ runAsUser: ids, fsGroup: ids, supplementalGroups: fc.array(ids, { maxLength: 2 }) }, some),
      volumes: fc.constant(declared),
      server: container(declared.map((each) => each.name)),
      model: container(declared.map((each) => each.name)),
    },
    { requiredKeys: ['volumes'] },
  ),
);
