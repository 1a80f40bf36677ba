import { expect, test } from '@jest/globals';
import { parseSettings } from '../../src/schema/settings.ts';

test('a runtime of another tool is refused with what to write instead', () => {
  const problemsOf = (SVC_RUNTIME: string): readonly string[] => {
    const parsed = parseSettings({ SVC_RUNTIME });
    return parsed.ok ? [] : parsed.problems;
  };
  expect(problemsOf('docker')).toEqual([
    'SVC_RUNTIME: Use "podman", which runs the same images as docker, or "process": docker is not supported (docs/podman.md)',
  ]);
  expect(problemsOf('k8s')).toEqual(['SVC_RUNTIME: Use "kube" for a cluster, not "k8s"']);
  expect(problemsOf('podmam')[0]).toContain('did you mean "podman"?');
});

test('variables of the installer, of svcctl and of tests are ignored, and unknown ones are refused', () => {
  const others = { SVC_ADMIN_PASSWORD: 'x', SVC_HOSTNAME: 'a.test', SVC_TOKEN: 'x', SVC_TEST_HELM: 'helm', SVC_SYSTEMD_IP: '10.0.0.1' };
  expect(parseSettings(others).ok).toBe(true);
  expect(parseSettings({ SVC_TOKENS: 'x' }).ok).toBe(false);
});
