/** Parts of a slot that break exactly one rule each, with the path of the problem. Tests use them for our own validation and that of API servers. */
export const REFUSED_COMBINATIONS: readonly (readonly [part: Readonly<Record<string, unknown>>, path: string])[] = [
  [{ storage: { claimName: 'models', hostPath: '/models' } }, 'storage.claimName'],
  [{ storage: { hostPath: '/models', size: '1Gi' } }, 'storage.hostPath'],
  [{ tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }] }, 'tolerations.0.value'],
  [{ tolerations: [{ value: 'b' }] }, 'tolerations.0.operator'],
  [{ tolerations: [{ key: 'a', tolerationSeconds: 3 }] }, 'tolerations.0.tolerationSeconds'],
];
