/* Log densities and gradients for Python without the cost of ctypes: the extension module `ulam.runtime._calls`.
 *
 * `DensityCall.evaluate` does what nearly every call wants (an array of float64 comes in, a number and a new array go
 * out) and leaves all else to Python: arguments of other kinds, errors, what a program prints. `quicken` puts methods
 * before those of `StanModel` that find the `DensityCall` without Python code. The C runtime knows nothing of this
 * module; its functions come as addresses.
 */
#define PY_SSIZE_T_CLEAN
#if !defined(Py_GIL_DISABLED) && !defined(Py_LIMITED_API)
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"

typedef int32_t (*run_value)(ulam_context *, void *entry, void *bound, const double *theta, int32_t jacobian);
typedef int32_t (*run_gradient)(ulam_context *, void *entry, void *bound, const double *theta, double *gradient,
                                int32_t jacobian);

/* A `runtime.workspace.Workspace`, with its addresses at hand. */
typedef struct {
  PyObject *object;
  ulam_context *ctx;
  double *theta, *gradient;
} workspace;

/* Idle workspaces: as many as calls ran at once, up to this. */
enum { KEPT = 16 };

typedef struct {
  PyObject_HEAD
  PyObject *unit;
  void *run, *entry, *bound;
  npy_intp n;
  int with_gradient, keeps;
  workspace *idle[KEPT]; /* taken and given back by exchanging one of them with NULL */
} density_call;

static PyObject *name_take, *name_give, *name_end; /* methods of StanModel */
static PyObject *name_propto, *name_jacobian, *name_out;

/* ------------------------------------------------------------ workspaces */

static void *address_of(PyObject *object, const char *name) {
  PyObject *value = PyObject_GetAttrString(object, name);
  if (value == NULL) return NULL;
  void *address = PyLong_AsVoidPtr(value);
  Py_DECREF(value);
  return address;
}

static void drop(workspace *space) {
  if (space == NULL) return;
  Py_XDECREF(space->object);
  free(space);
}

static workspace *take(density_call *call, PyObject *model) {
  for (int i = 0; i < KEPT; ++i) {
    if (__atomic_load_n(&call->idle[i], __ATOMIC_RELAXED) == NULL) continue;
    workspace *found = __atomic_exchange_n(&call->idle[i], NULL, __ATOMIC_ACQUIRE);
    if (found) return found;
  }
  workspace *made = calloc(1, sizeof *made);
  if (made == NULL) return (workspace *)PyErr_NoMemory();
  made->object = PyObject_CallMethodObjArgs(model, name_take, NULL);
  if (made->object) {
    made->ctx = address_of(made->object, "address");
    made->theta = address_of(made->object, "theta_address");
    made->gradient = address_of(made->object, "gradient_address");
  }
  if (!PyErr_Occurred()) return made;
  drop(made);
  return NULL;
}

static void give(density_call *call, PyObject *model, workspace *space) {
  for (int i = 0; call->keeps && i < KEPT; ++i) {
    workspace *expected = NULL;
    if (__atomic_compare_exchange_n(&call->idle[i], &expected, space, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
  }
  PyObject *type, *value, *traceback; /* an error on its way is not to be lost */
  PyErr_Fetch(&type, &value, &traceback);
  Py_XDECREF(PyObject_CallMethodObjArgs(model, name_give, space->object, NULL));
  PyErr_Restore(type, value, traceback);
  drop(space);
}

/* ------------------------------------------------------------ evaluation */

/* Whether `object` is a vector of `n` numbers of float64 one after the other. */
static int is_plain(PyObject *object, npy_intp n, int flags) {
  if (!PyArray_CheckExact(object)) return 0;
  PyArrayObject *array = (PyArrayObject *)object;
  return PyArray_NDIM(array) == 1 && PyArray_DIM(array, 0) == n && PyArray_TYPE(array) == NPY_DOUBLE &&
         PyArray_CHKFLAGS(array, flags) && PyArray_ISNOTSWAPPED(array);
}

/* Without the interpreter lock, however short runs have been so far: one that does not end is stopped by other threads. */
static int32_t run(const density_call *call, const workspace *space, int jacobian) {
  int32_t status;
  Py_BEGIN_ALLOW_THREADS
  status = call->with_gradient ? ((run_gradient)call->run)(space->ctx, call->entry, call->bound, space->theta,
                                                           space->gradient, jacobian)
                               : ((run_value)call->run)(space->ctx, call->entry, call->bound, space->theta, jacobian);
  Py_END_ALLOW_THREADS
  return status;
}

static PyObject *evaluated(density_call *call, PyObject *model, PyObject *theta, PyObject *with_jacobian,
                           PyObject *out) {
  if (!is_plain(theta, call->n, NPY_ARRAY_CARRAY_RO)) Py_RETURN_NONE;
  if (out != Py_None && !is_plain(out, call->n, NPY_ARRAY_CARRAY)) Py_RETURN_NONE;
  const int jacobian = PyObject_IsTrue(with_jacobian);
  if (jacobian < 0) return NULL;
  workspace *space = take(call, model);
  if (space == NULL) return NULL;
  const size_t bytes = (size_t)call->n * sizeof(double);
  memcpy(space->theta, PyArray_DATA((PyArrayObject *)theta), bytes);
  const int32_t status = run(call, space, jacobian);
  PyObject *result = NULL;
  if (status != ULAM_OK || space->ctx->output_length != 0) { /* Python shows what was printed, and raises */
    PyObject *number = PyLong_FromLong(status);
    PyObject *ended = number == NULL ? NULL
                                     : PyObject_CallMethodObjArgs(model, name_end, call->unit, space->object, number,
                                                                  with_jacobian, NULL);
    Py_XDECREF(number);
    if (ended == NULL) goto end;
    Py_DECREF(ended);
  }
  if (!call->with_gradient) {
    result = PyFloat_FromDouble(space->ctx->value);
    goto end;
  }
  PyObject *gradient = out;
  if (out == Py_None)
    gradient = PyArray_SimpleNew(1, &call->n, NPY_DOUBLE);
  else
    Py_INCREF(out);
  if (gradient == NULL) goto end;
  memcpy(PyArray_DATA((PyArrayObject *)gradient), space->gradient, bytes);
  PyObject *value = PyFloat_FromDouble(space->ctx->value);
  result = value == NULL ? NULL : PyTuple_Pack(2, value, gradient);
  Py_XDECREF(value);
  Py_DECREF(gradient);
end:
  give(call, model, space);
  return result;
}

static PyObject *evaluate(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
  if (count == 4) return evaluated((density_call *)self, arguments[0], arguments[1], arguments[2], arguments[3]);
  PyErr_SetString(PyExc_TypeError, "evaluate(model, theta, jacobian, out)");
  return NULL;
}

/* ------------------------------------------------------------ methods of StanModel */

/* A method of the model: what it is called in Python, the attribute with its calls by `propto`, and Python's own. */
typedef struct {
  const char *name, *known;
  PyObject *known_name, *in_python;
} quick_method;

static quick_method of_value = {"log_density", "_values", NULL, NULL},
                    of_gradient = {"log_density_gradient", "_gradients", NULL, NULL};

static PyObject *call_python(PyObject *method, PyObject *model, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *names) {
  const Py_ssize_t keywords = names == NULL ? 0 : PyTuple_Size(names);
  PyObject *places = PyTuple_New(count + 1), *named = PyDict_New(), *result = NULL;
  if (places == NULL || named == NULL) goto end;
  for (Py_ssize_t i = 0; i <= count; ++i) {
    PyObject *argument = i == 0 ? model : arguments[i - 1];
    Py_INCREF(argument);
    if (PyTuple_SetItem(places, i, argument) < 0) goto end;
  }
  for (Py_ssize_t i = 0; i < keywords; ++i)
    if (PyDict_SetItem(named, PyTuple_GetItem(names, i), arguments[count + i]) < 0) goto end;
  result = PyObject_Call(method, places, named);
end:
  Py_XDECREF(places);
  Py_XDECREF(named);
  return result;
}

/* Names of arguments that are written in a call are interned; others, as all that is unusual, are Python's to read. */
static PyObject *call_quickly(const quick_method *method, PyObject *model, PyObject *const *arguments, Py_ssize_t count,
                              PyObject *names) {
  const Py_ssize_t keywords = names == NULL ? 0 : PyTuple_Size(names);
  PyObject *propto = Py_True, *jacobian = Py_True, *out = Py_None;
  int usual = count == 1;
  for (Py_ssize_t i = 0; usual && i < keywords; ++i) {
    PyObject *name = PyTuple_GetItem(names, i), *argument = arguments[count + i];
    if (name == name_propto)
      propto = argument;
    else if (name == name_jacobian)
      jacobian = argument;
    else if (name == name_out && method == &of_gradient)
      out = argument;
    else
      usual = 0;
  }
  if (usual) {
    PyObject *known = PyObject_GetAttr(model, method->known_name);
    if (known == NULL) return NULL;
    PyObject *call = PyDict_GetItemWithError(known, propto);
    Py_XINCREF(call);
    Py_DECREF(known);
    if (call != NULL) {
      PyObject *result = evaluated((density_call *)call, model, arguments[0], jacobian, out);
      Py_DECREF(call);
      if (result != Py_None) return result;
      Py_DECREF(result);
    } else if (PyErr_Occurred()) {
      return NULL;
    }
  }
  return call_python(method->in_python, model, arguments, count, names);
}

static PyObject *log_density(PyObject *model, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  return call_quickly(&of_value, model, arguments, count, names);
}

static PyObject *log_density_gradient(PyObject *model, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  return call_quickly(&of_gradient, model, arguments, count, names);
}

static PyMethodDef quick[] = {
    {"log_density", (PyCFunction)(void (*)(void))log_density, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"log_density_gradient", (PyCFunction)(void (*)(void))log_density_gradient, METH_FASTCALL | METH_KEYWORDS, NULL},
};

/* `text`, which is kept: signature and description. */
static int replace_method(PyObject *model, quick_method *method, PyMethodDef *definition, PyObject *text) {
  method->in_python = PyObject_GetAttrString(model, method->name);
  method->known_name = PyUnicode_InternFromString(method->known);
  definition->ml_doc = PyUnicode_AsUTF8AndSize(text, NULL);
  if (method->in_python == NULL || method->known_name == NULL || definition->ml_doc == NULL) return -1;
  Py_INCREF(text);
  PyObject *descriptor = PyDescr_NewMethod((PyTypeObject *)model, definition);
  int status = descriptor == NULL ? -1 : PyObject_SetAttrString(model, method->name, descriptor);
  Py_XDECREF(descriptor);
  return status;
}

static PyObject *quicken(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *model, *for_value, *for_gradient;
  if (!PyArg_ParseTuple(arguments, "O!UU", &PyType_Type, &model, &for_value, &for_gradient)) return NULL;
  if (of_value.in_python != NULL) {
    PyErr_SetString(PyExc_TypeError, "quicken is called once, with the class of models");
    return NULL;
  }
  if (replace_method(model, &of_value, &quick[0], for_value) < 0 ||
      replace_method(model, &of_gradient, &quick[1], for_gradient) < 0)
    return NULL;
  Py_RETURN_NONE;
}

/* ------------------------------------------------------------ the type */

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"unit", "run", "entry", "bound", "n", "with_gradient", "keeps", NULL};
  PyObject *unit, *run, *entry, *bound;
  Py_ssize_t n;
  int with_gradient, keeps;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOOnpp", names, &unit, &run, &entry, &bound, &n,
                                   &with_gradient, &keeps))
    return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  density_call *call = (density_call *)allocate(type, 0);
  if (call == NULL) return NULL;
  call->run = PyLong_AsVoidPtr(run);
  call->entry = PyLong_AsVoidPtr(entry);
  call->bound = PyLong_AsVoidPtr(bound);
  call->n = n;
  call->with_gradient = with_gradient;
  call->keeps = keeps;
  Py_INCREF(unit);
  call->unit = unit;
  if (PyErr_Occurred()) {
    Py_DECREF((PyObject *)call);
    return NULL;
  }
  return (PyObject *)call;
}

static void release(PyObject *self) {
  density_call *call = (density_call *)self;
  PyTypeObject *type = Py_TYPE(self);
  for (int i = 0; i < KEPT; ++i) drop(call->idle[i]);
  Py_XDECREF(call->unit);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/* ------------------------------------------------------------ memory of C that goes with a Python object */

static void free_owned(PyObject *capsule) {
  void (*give_back)(void *) = (void (*)(void *))PyCapsule_GetContext(capsule);
  void *address = PyCapsule_GetPointer(capsule, NULL);
  Py_BEGIN_ALLOW_THREADS /* it may wait for calls of other threads */
  give_back(address);
  Py_END_ALLOW_THREADS
}

static PyObject *owned(PyObject *module, PyObject *args) {
  (void)module;
  unsigned long long address, give_back;
  if (!PyArg_ParseTuple(args, "KK", &address, &give_back)) return NULL;
  PyObject *capsule = PyCapsule_New((void *)(uintptr_t)address, NULL, free_owned);
  if (capsule != NULL && PyCapsule_SetContext(capsule, (void *)(uintptr_t)give_back) < 0) Py_CLEAR(capsule);
  return capsule;
}

static PyMethodDef functions[] = {
    {"owned", owned, METH_VARARGS,
     "owned(address, give_back): what calls the C function `give_back` with the address when nobody refers to it.\n\n"
     "No Python code runs then: an interrupt that comes in `__del__`, or in a callback of a weak reference, is lost."},
    {"quicken", quicken, METH_VARARGS,
     "quicken(class, text, text): log_density and log_density_gradient without Python code, where a call has the usual\n"
     "arguments; with their signatures and descriptions."},
    {NULL, NULL, 0, NULL},
};

/* ------------------------------------------------------------ the module */

static PyMethodDef methods[] = {
    {"evaluate", (PyCFunction)(void (*)(void))evaluate, METH_FASTCALL,
     "evaluate(model, theta, jacobian, out): the log density, with its gradient if there is one.\n\n"
     "None if theta or out is not a contiguous array of float64 and of the right shape."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"unit", T_OBJECT_EX, offsetof(density_call, unit), READONLY, "What is evaluated."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Evaluations of a loaded unit."},
    {Py_tp_new, make},
    {Py_tp_dealloc, release},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "ulam.runtime._calls.DensityCall",
    .basicsize = sizeof(density_call),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ulam.runtime._calls", .m_doc = "Calls of compiled code from Python.", .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__calls(void) {
  import_array();
  PyObject *module = PyModule_Create(&definition);
  if (module == NULL) return NULL;
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
  name_take = PyUnicode_InternFromString("_take");
  name_give = PyUnicode_InternFromString("_give");
  name_end = PyUnicode_InternFromString("_end_evaluation");
  name_propto = PyUnicode_InternFromString("propto");
  name_jacobian = PyUnicode_InternFromString("jacobian");
  name_out = PyUnicode_InternFromString("out");
  PyObject *type = PyType_FromSpec(&spec);
  if (!name_take || !name_give || !name_end || !name_propto || !name_jacobian || !name_out || type == NULL ||
      PyModule_AddObjectRef(module, "DensityCall", type) < 0)
    Py_CLEAR(module);
  Py_XDECREF(type);
  return module;
}
