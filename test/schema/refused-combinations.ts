/** Parts of a slot that break exactly one rule each, with the path that is blamed: for the program's own check and for that of an API server. */
export const REFUSED_COMBINATIONS: readonly (readonly [part: Readonly<Record<string, unknown>>, path: string])[] = [
  [{ storage: { claimName: 'models', hostPath: '/models' } }, 'storage.claimName'],
  [{ storage: { hostPath: '/models', size: '1Gi' } }, 'storage.hostPath'],
  [{ tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }] }, 'tolerations.0.value'],
  [{ tolerations: [{ value: 'b' }] }, 'tolerations.0.operator'],
  [{ tolerations: [{ key: 'a', tolerationSeconds: 3 }] }, 'tolerations.0.tolerationSeconds'],
];
