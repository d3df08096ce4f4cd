/** Targets a proxy is tempted to tidy up. */
export const targets = [
  '/d/x/a%2Fb', '/d/x/%2e%2e/y', '/d/x/..%2fy', '/d/x/../y', '/d/x/./y', '/d/x/%2e/y', '/d/x/.', '/d/x/..', '/d/x/...', '/d/x//', '/d/x//a///b', '/d/x/a\\b',
  '/d/x/%5C..%5Cy', '/d/x/[...slug]', '/d/x/{a}|^`"<>', '/d/x/a%0d%0ab', '/d/x/%00', '/d/x/%7e~%41', '/d/x/%F0%9F%98%80', '/d/x/a;b=c,d@e:f!$&\'()*+', '/d/x/%25252e',
  '/d/x/?', '/d/x/??', '/d/x/?next=../x', '/d/x/?next=http://other.test/../y', '/d/x/?a=1&a=2&&=', '/d/x/?a=%zz', '/d/x/?a=%2F%3f#', '/d/x/?a=[b]{c}|"\\', '/d/x/?a b'.replace(' ', '+'),
  '/d/x/http://other.test/', '/d/x/@other.test', '/d/x/%ff'
]
